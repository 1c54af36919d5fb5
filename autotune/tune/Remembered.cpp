#include "autotune/tune/Remembered.h"

#include "autotune/records/Standing.h"

namespace normc::tune {

Earlier choiceOf(const Landscape& landscape, const std::vector<Record>& records, const Setting& setting) {
  const Standing standing(records);
  Earlier earlier;
  const Record* newest = nullptr;
  for (const Record& record : records) {
    if (record.kind != RecordKind::Choice || record.task != setting.task || record.device != setting.device ||
        record.toolchain != setting.toolchain)
      continue;
    if (!standing.reasonRejected(record).empty()) continue;
    if (!newest || newer(record, *newest)) newest = &record;
    const auto point = landscape.find(record.generator, record.schedule);
    if (!point || (earlier.choice && !newer(record, *earlier.choice))) continue;
    earlier.choice = &record;
    earlier.point = *point;
  }
  earlier.absentWin = newest != earlier.choice && newest->conclusion->verdict == Verdict::Won;
  return earlier;
}

Conclusion conclusionOf(const Decision& d) {
  return {d.tie ? Verdict::Tie : Verdict::Won, d.ratio.value, d.ratio.low, d.ratio.high};
}

std::map<size_t, Screened> rememberedFrom(const Landscape& landscape, const std::vector<Record>& records,
                                          const Setting& setting) {
  std::map<size_t, Screened> remembered;
  std::map<size_t, const Record*> newest;
  for (const Record& record : records) {
    if (record.kind != RecordKind::Trial || record.task != setting.task || record.device != setting.device ||
        record.toolchain != setting.toolchain)
      continue;
    const auto point = landscape.find(record.generator, record.schedule);
    if (!point) continue;
    if (record.status == Status::Ok && record.samples.empty()) continue;
    Screened& one = remembered[*point];
    one.point = *point;
    one.remembered = true;
    if (const Record*& last = newest[*point]; !last || newer(record, *last)) {
      last = &record;
      one.status = record.status;
      one.reason = record.reason;
    }
    one.samples.insert(one.samples.end(), record.samples.begin(), record.samples.end());
    one.reference.insert(one.reference.end(), record.reference.begin(), record.reference.end());
  }
  return remembered;
}

}  // namespace normc::tune
