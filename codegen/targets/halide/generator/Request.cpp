#include "codegen/targets/halide/generator/Request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace normc::halide {
namespace {

using Json = nlohmann::json;

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// A JSON value and how it was reached, for errors.
class Node {
 public:
  Node(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& why) const { throw BadRequest(path_ + " " + why); }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  Node at(const char* key) const {
    if (!json_.is_object()) fail("is not an object");
    if (!json_.contains(key)) fail(std::string("has no \"") + key + "\"");
    return {json_[key], path_ + "." + key};
  }
  std::vector<Node> items() const {
    if (!json_.is_array()) fail("is not a list");
    std::vector<Node> nodes;
    for (size_t i = 0; i < json_.size(); ++i)
      nodes.emplace_back(json_[i], path_ + "[" + std::to_string(i) + "]");
    return nodes;
  }
  std::string text() const {
    if (!json_.is_string()) fail("is not a string");
    return json_.get<std::string>();
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) fail("is not an integer");
    return json_.get<int64_t>();
  }
  bool flag() const {
    if (!json_.is_boolean()) fail("is neither true nor false");
    return json_.get<bool>();
  }
  /// JSON has no infinities.
  double number() const {
    if (json_.is_number()) return json_.get<double>();
    const std::string word = json_.is_string() ? json_.get<std::string>() : "";
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    fail("is not a number");
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> list;
    for (const Node& n : items()) list.push_back(n.text());
    return list;
  }
  std::vector<int> values() const {
    std::vector<int> list;
    for (const Node& n : items()) list.push_back(static_cast<int>(n.integer()));
    return list;
  }

 private:
  const Json& json_;
  std::string path_;
};

Kind kindOf(const Node& n) {
  static constexpr const char* names[] = {"run", "block", "column", "stream"};
  const auto* at = std::find(std::begin(names), std::end(names), n.text());
  if (at == std::end(names)) n.fail("is '" + n.text() + "'; known: run, block, column, stream");
  return Kind(at - names);
}

Combiner combinerOf(const Node& n) {
  if (n.text() == "add") return Combiner::Add;
  if (n.text() == "max") return Combiner::Max;
  n.fail("is '" + n.text() + "'; known: add, max");
}

/// Reads operations and checks that every value is defined before it is used and every tensor is declared.
class OpReader {
 public:
  explicit OpReader(const Kernel& kernel) : kernel_(kernel) {}

  std::vector<Op> ops(const Node& list) {
    std::vector<Op> ops;
    for (const Node& n : list.items()) ops.push_back(op(n));
    return ops;
  }

 private:
  std::vector<std::string> tensors(const Node& list) {
    std::vector<std::string> names = list.texts();
    for (const std::string& name : names)
      if (!kernel_.find(name)) list.fail("names a tensor '" + name + "', which the kernel does not declare");
    return names;
  }
  std::vector<int> used(const Node& list) {
    std::vector<int> values = list.values();
    for (int v : values) use(list, v);
    return values;
  }
  void use(const Node& node, int value) {
    if (!defined_.contains(value))
      node.fail("uses value " + std::to_string(value) + ", which is not defined before");
  }
  std::vector<int> define(const Node& list) {
    std::vector<int> values = list.values();
    for (int v : values)
      if (!defined_.insert(v).second) list.fail("defines value " + std::to_string(v) + " twice");
    return values;
  }

  Op op(const Node& n) {
    Op op;
    op.name = n.at("op").text();
    if (n.has("in")) op.in = used(n.at("in"));
    if (n.has("type")) op.type = n.at("type").text();
    if (n.has("text")) op.text = n.at("text").text();
    if (n.has("number")) op.number = n.at("number").number();
    if (n.has("integer")) op.integer = n.at("integer").integer();
    if (n.has("head")) op.head = n.at("head").integer();
    if (n.has("contract")) op.contract = n.at("contract").flag();
    if (n.has("in_segment")) op.inSegment = n.at("in_segment").flag();
    if (op.name == "slab") {
      op.kind = kindOf(n.at("kind"));
      op.per = n.at("per").texts();
    }
    for (auto [key, list] :
         {std::pair{"reads", &op.reads}, {"writes", &op.writes}, {"partials", &op.partials}})
      if (n.has(key)) *list = tensors(n.at(key));
    if (n.has("condition")) use(n, op.condition = static_cast<int>(n.at("condition").integer()));
    if (n.has("window")) use(n, op.window = static_cast<int>(n.at("window").integer()));
    if (n.has("args")) op.args = define(n.at("args"));
    if (n.has("body")) op.body = ops(n.at("body"));
    if (n.has("yield")) op.yield = used(n.at("yield"));
    if (n.has("out")) op.out = define(n.at("out"));
    for (const char* name : {"load", "store", "accumulate"})
      if (op.name == name && !kernel_.find(op.text))
        n.fail("names a tensor '" + op.text + "', which the kernel does not declare");
    if (op.name == "sweep") {
      if (op.args.size() != op.reads.size()) n.fail("takes not one element for each tensor that it reads");
      if (op.yield.size() != op.writes.size() + op.out.size() + op.partials.size())
        n.fail("yields not one value for each write, sum and partial");
      op.combiners.resize(op.out.size() + op.partials.size(), Combiner::Add);
      if (n.has("combiners")) {
        const std::vector<Node> list = n.at("combiners").items();
        if (list.size() != op.combiners.size()) n.fail("has not one combiner for each sum and partial");
        std::transform(list.begin(), list.end(), op.combiners.begin(), combinerOf);
      }
    }
    if (op.name == "probe" &&
        (op.yield.empty() ? op.reads.size() != 1 : op.yield.size() != 1 || op.args.size() != op.reads.size()))
      n.fail("computes not one value from one element of each tensor that it reads");
    if (op.name == "fold" &&
        (op.args.size() != 1 + op.in.size() + op.reads.size() || op.yield.size() != op.in.size()))
      n.fail("has a region that does not fit what it folds");
    return op;
  }

  const Kernel& kernel_;
  std::set<int> defined_;
};

Tensor tensorOf(const Node& n) {
  Tensor t{n.at("name").text(),
           n.at("type").text(),
           n.at("axes").texts(),
           n.at("role").text(),
           n.at("access").text() == "write",
           n.at("window").integer()};
  if (!contains({"f32", "f64", "f16", "bf16", "i64", "i8"}, t.type))
    n.fail("has the type '" + t.type + "'; known: f32, f64, f16, bf16, i64, i8");
  return t;
}

Kernel kernelOf(const Node& n) {
  Kernel k;
  k.symbol = n.at("symbol").text();
  k.problem = n.at("problem").text();
  const std::string layout = n.at("layout").text();
  if (layout != "features_last" && layout != "channels_first")
    n.fail("has the layout '" + layout + "'; known: features_last, channels_first");
  k.featuresLast = layout == "features_last";
  k.statistics = n.at("statistics").text();
  if (k.statistics != "f32" && k.statistics != "f64")
    n.fail("computes statistics in '" + k.statistics + "'; known: f32, f64");
  k.segmentsAreOne = n.at("segments_are_one").flag();
  k.groups = n.at("groups").integer();
  k.preGroups = n.at("pre_groups").integer();
  if (n.has("features")) k.features = n.at("features").integer();
  k.numbers = n.at("numbers").texts();
  for (const Node& t : n.at("tensors").items()) k.tensors.push_back(tensorOf(t));
  for (const Node& p : n.at("phases").items()) {
    OpReader reader(k);
    k.phases.push_back({p.at("name").text(), p.at("units").texts(),
                        p.has("by_segment") && p.at("by_segment").flag(), reader.ops(p.at("body"))});
  }
  return k;
}

bool isPower(int64_t value) { return value >= 1 && value <= 65536 && (value & (value - 1)) == 0; }

Schedule scheduleOf(const Node& n) {
  Schedule s;
  for (auto [key, knob] : {std::pair{"vector", &s.vector},
                           {"rows", &s.rows},
                           {"unroll", &s.unroll},
                           {"tile", &s.tile},
                           {"columns", &s.columns}}) {
    *knob = n.at(key).integer();
    if (!isPower(*knob))
      n.at(key).fail("is " + std::to_string(*knob) + "; legal: a power of two up to 65536");
  }
  s.scalarTail = n.at("scalar_tail").flag();
  return s;
}

}  // namespace

bool Tensor::has(const std::string& axis) const { return contains(axes, axis); }
int Tensor::chunkPhase() const {
  for (const std::string& axis : axes)
    if (axis.starts_with("chunk.")) return std::atoi(axis.c_str() + 6);
  return -1;
}
bool Op::isPer(const std::string& axis) const { return contains(per, axis); }

const Tensor* Kernel::find(const std::string& name) const {
  auto at = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  return at == tensors.end() ? nullptr : &*at;
}
const Tensor& Kernel::tensor(const std::string& name) const { return *find(name); }

Request parseRequest(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw BadRequest("the request is not JSON");
  const Node root(json, "request");
  if (const int64_t schema = root.at("schema").integer(); schema != kSchema)
    throw BadRequest("the request has schema " + std::to_string(schema) + "; this normc-halide-gen reads " +
                     std::to_string(kSchema) + ": normc and normc-halide-gen have to be of the same build");
  Request r;
  r.target = root.at("target").text();
  r.emit = root.at("emit").text();
  if (!contains({"object", "halide", "stmt", "asm"}, r.emit))
    root.at("emit").fail("is '" + r.emit + "'; known: object, halide, stmt, asm");
  r.schedule = scheduleOf(root.at("schedule"));
  r.kernel = kernelOf(root.at("kernel"));
  if (root.has("count")) {
    r.count = root.at("count").values();
    if (r.count.size() != 3) root.at("count").fail("is not segments, rows, features");
  }
  return r;
}

}  // namespace normc::halide
