#include "runtime/hosts/common/Configure.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/hosts/common/Registry.h"
#include "runtime/hosts/common/TypeNames.h"

namespace normc::hosts {
namespace {

using nlohmann::json;

template <typename F>
const char* guarded(F body) {
  thread_local std::string said;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    said = error.what();
    return said.c_str();
  }
}

json fieldsOf(const std::vector<normc_field>& fields) {
  constexpr const char* kTypes[] = {"f32", "f64", "i64"};
  constexpr const char* kExtents[] = {"", "segments", "rows", "features"};
  json all = json::array();
  for (const normc_field& field : fields) {
    json shape = json::array();
    for (int i = 0; i < field.ndim; ++i) {
      if (field.extent[i] == NORMC_EXTENT_FIXED)
        shape.push_back(field.shape[i]);
      else
        shape.push_back(kExtents[field.extent[i]]);
    }
    all.push_back({{"name", field.name},
                   {"dtype", kTypes[field.type]},
                   {"shape", shape},
                   {"init", field.init},
                   {"read", (field.access & NORMC_FIELD_READ) != 0},
                   {"written", (field.access & NORMC_FIELD_WRITTEN) != 0}});
  }
  return all;
}

json aroundOf(const std::vector<Around>& around) {
  constexpr const char* kUses[] = {"read", "ignored", "written", "optional", "read_if_given", "same"};
  constexpr const char* kShapes[] = {"elements", "features", "rows", "segments", "blocks", "one", "pairs"};
  json all = json::array();
  for (const Around& each : around)
    all.push_back({{"name", each.row->name},
                   {"use", kUses[each.use]},
                   {"shape", kShapes[each.shape]},
                   {"dtype", nameOf(each.dtype)},
                   {"pairs", each.pairs},
                   {"blocks", each.blocks},
                   {"same_as", each.sameAs ? json(each.sameAs) : json()}});
  return all;
}

}  // namespace
}  // namespace normc::hosts

using namespace normc::hosts;

const char* normc_hosts_add_package(const char* source, const char* path) {
  return guarded([&] { Registry::get().addPackage(source, path); });
}

const char* normc_hosts_add_norm(const char* source, const char* path) {
  return guarded([&] { Registry::get().addNorm(source, path); });
}

const char* normc_hosts_set_compiler(const char* program, const char* cache) {
  return guarded([&] { Registry::get().setCompiler(program, cache); });
}

const char* normc_hosts_set_log(normc_log log) {
  return guarded([&] { Registry::get().setLog(log); });
}

const char* normc_hosts_describe(const char* text, const char* entry, const char* data, const char* params,
                                 int mask, int cuda, const char** result) {
  return guarded([&] {
    thread_local std::string said;
    Request request{.entry = entryNamed(entry), .data = floatingNamed(data), .params = floatingNamed(params)};
    request.mask = mask != 0;
    if (cuda >= 0) request.device = {kDLCUDA, cuda};
    request.channelsFirst = NormText::parse(text).channelsFirst;
    const Prepared& prepared = Registry::get().prepared(text, request);
    json numbers = json::object();
    for (const normc_number_info& number : prepared.plan.numbers())
      if (!number.threshold) numbers[number.name] = number.value;
    said = json{{"scale", prepared.scale},
                {"neutral_scale", prepared.neutralScale},
                {"scale_gradient", prepared.dscale},
                {"bias_gradient", prepared.dbias},
                {"bias", prepared.bias},
                {"state", fieldsOf(prepared.state)},
                {"saved", fieldsOf(prepared.saved)},
                {"y", prepared.y},
                {"codes", prepared.codes ? json(nameOf(*prepared.codes)) : json()},
                {"dx", prepared.dx},
                {"partial", prepared.partialBytes / sizeof(double)},
                {"around", aroundOf(prepared.around)},
                {"reads_x", prepared.readsX},
                {"reads_scale", prepared.readsScale},
                {"reads_bias", prepared.readsBias},
                {"reads_state", prepared.readsState},
                {"writes_state", prepared.writesState},
                {"numbers", numbers}}
               .dump();
    *result = said.c_str();
  });
}
