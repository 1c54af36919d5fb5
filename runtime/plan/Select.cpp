#include "runtime/plan/Select.h"

#include <algorithm>
#include <vector>

#include "runtime/core/Error.h"

namespace normc::runtime {
namespace {

std::string text(std::optional<int64_t> size) { return size ? std::to_string(*size) : "any"; }

std::string text(const std::map<std::string, int64_t>& bindings) {
  std::string result;
  for (const auto& [key, value] : bindings)
    result += (result.empty() ? "bindings " : ",") + key + "=" + std::to_string(value);
  return result.empty() ? "no bindings" : result;
}

/// Returns why the kernel computes something else; empty if it does not.
std::string problemDiffers(const Kernel& kernel, const ProblemRequest& request) {
  const ProblemText &has = kernel.parts, &wants = request.parts;
  const auto differs = [](std::string_view what, const std::string& has, const std::string& wants) {
    return std::string(what) + " " + has + ", not " + wants;
  };
  if (has.data != wants.data)
    return differs("is for data", std::string(name(has.data)), std::string(name(wants.data)));
  if (has.params != wants.params)
    return differs("is for params", std::string(name(has.params)), std::string(name(wants.params)));
  if (has.types().output != wants.types().output)
    return differs("is for y of", std::string(name(has.types().output)),
                   std::string(name(wants.types().output)));
  if (has.roundsNormalized != wants.roundsNormalized)
    return has.roundsNormalized ? "rounds the normalized value" : "does not round the normalized value";
  if (has.types().stream != wants.types().stream)
    return differs("is for a residual of", std::string(name(has.types().stream)),
                   std::string(name(wants.types().stream)));
  if (has.layout != wants.layout)
    return differs("is for layout", std::string(name(has.layout)), std::string(name(wants.layout)));
  if (has.segmented != wants.segmented)
    return has.segmented ? "is for three dimensions, not two" : "is for two dimensions, not three";
  if (has.mask != wants.mask) return has.mask ? "needs a mask" : "takes no mask";
  if (has.bindings != wants.bindings) return differs("is for", text(has.bindings), text(wants.bindings));
  if (has.features && has.features != wants.features)
    return differs("is for features", text(has.features), text(wants.features));
  return {};
}

/// The numbers of rows that calls of the request may have.
struct PossibleRows {
  Range all, ofASegment;
  explicit PossibleRows(const ProblemRequest& request) {
    const ProblemText& parts = request.parts;
    if (parts.rows) ofASegment = {*parts.rows, *parts.rows};
    if (parts.rows && (parts.segments || !parts.segmented))
      all.least = all.most = multiply(parts.segments.value_or(1), *parts.rows);
    else
      all.least = parts.rows.value_or(0);
  }
};

enum class Serves { All, Some, None };

Serves serves(const Range& served, const Range& possible) {
  if (served.least <= possible.least && possible.most <= served.most) return Serves::All;
  return served.least <= possible.most && possible.least <= served.most ? Serves::Some : Serves::None;
}

std::string text(const Range& range) {
  return std::to_string(range.least) + " to " +
         (range.most == kHuge ? "any number of" : std::to_string(range.most)) + " rows";
}

/// Returns whether the kernel serves all, some or none of the sizes, and why not all.
Serves serves(const Kernel& kernel, const ProblemRequest& request, std::string& why) {
  const PossibleRows possible(request);
  Serves worst = Serves::All;
  const auto judge = [&](const char* what, const Range& served, const Range& possible) {
    const Serves verdict = serves(served, possible);
    if (verdict <= worst) return;
    worst = verdict;
    why = what + text(served) + ", not " +
          (possible.least == possible.most ? std::to_string(possible.least)
           : verdict == Serves::Some       ? "any number"
                                           : std::to_string(possible.least) + " and more");
  };
  judge("serves ", kernel.limits.rows(), possible.all);
  judge("serves segments of ", kernel.limits.run(), possible.ofASegment);
  return worst;
}

/// Returns the line about one kernel.
std::string line(size_t index, const Kernel& kernel, const std::string& text) {
  return "  kernel " + std::to_string(index) + " (" + kernel.problem + ", " + kernel.target() + ", " +
         kernel.generator + "): " + text + "\n";
}

normc_status noSuchNorm(const Manifest& manifest, const ProblemRequest& request) {
  std::string entries, norms;
  std::vector<std::string_view> seen;
  for (const Kernel& kernel : manifest.kernels) {
    const bool sameNorm = kernel.parts.norm == request.parts.norm;
    const std::string_view name = sameNorm ? normc::name(kernel.parts.entry) : kernel.parts.norm;
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    std::string& list = sameNorm ? entries : norms;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (!entries.empty())
    return fail(NORMC_NOT_FOUND, "the package has no ", name(request.parts.entry), " of '",
                request.parts.norm, "'; it has: ", entries);
  return fail(NORMC_NOT_FOUND, "the package has no norm '", request.parts.norm,
              "'; it has: ", norms.empty() ? std::string("none") : norms);
}

}  // namespace

std::string limitsText(const Kernel& kernel) {
  std::string result;
  if (kernel.limits.rows() != Range()) result = text(kernel.limits.rows());
  if (kernel.limits.run() != Range())
    result += (result.empty() ? "segments of " : " in segments of ") + text(kernel.limits.run());
  return result.empty() ? "any number of rows" : result;
}

/// Returns the advantage of the better of two kernels; empty if only their order differs.
std::string Selection::edge(const Candidate& better, const Candidate& other) {
  const Kernel &a = *better.kernel, &b = *other.kernel;
  if (better.rank != other.rank) return better.advantage;
  if (a.parts.features.has_value() != b.parts.features.has_value())
    return "is compiled for exactly these features";
  if (better.fit != other.fit)
    return better.fit == Platform::Verdict::OfThis ? "is for the core of this processor"
                                                   : "is not for another core";
  if (a.limits.widths() != b.limits.widths()) return "has the narrower limits";
  return {};
}

bool Selection::precedes(const Candidate& first, const Candidate& second) {
  const Kernel &a = *first.kernel, &b = *second.kernel;
  if (first.rank != second.rank) return first.rank > second.rank;
  if (a.parts.features.has_value() != b.parts.features.has_value()) return a.parts.features.has_value();
  if (first.fit != second.fit) return first.fit > second.fit;
  const auto widthA = a.limits.widths(), widthB = b.limits.widths();
  return widthA != widthB ? widthA < widthB : first.index < second.index;
}

normc_status Selection::make(const Manifest& manifest, const ProblemRequest& request,
                             const Platform& platform, Selection& selection) {
  Selection made;
  bool related = false, otherDevice = false;
  const Kernel* undivided = nullptr;  // would serve multiples of its featuresMultiple
  for (size_t i = 0; i < manifest.kernels.size(); ++i) {
    const Kernel& kernel = manifest.kernels[i];
    if (kernel.parts.norm != request.parts.norm || kernel.parts.entry != request.parts.entry) continue;
    related = true;
    std::string reason = problemDiffers(kernel, request), limits;
    Serves served = Serves::None;
    if (const auto features = request.parts.features;
        reason.empty() && features && !kernel.divides(*features)) {
      undivided = &kernel;
      reason = "is for multiples of " + std::to_string(kernel.featuresMultiple) + " features, not " +
               text(features);
    }
    if (reason.empty()) {
      served = serves(kernel, request, limits);
      if (served == Serves::None) reason = limits;
    }
    if (reason.empty()) {
      Platform::Verdict verdict = platform.judge(kernel);
      if (verdict.refusal.empty())
        (served == Serves::All ? made.able_ : made.some_)
            .push_back({i, &kernel, verdict.rank, std::move(verdict.advantage), verdict.fit});
      reason = std::move(verdict.refusal);
      otherDevice |= !reason.empty();
    }
    if (!reason.empty()) made.unable_ += line(i, kernel, reason);
  }
  if (!related) return noSuchNorm(manifest, request);
  if (made.able_.empty() && made.some_.empty() && undivided)
    return fail(NORMC_INVALID_ARGUMENT, "problem '", request.text, "': ", *request.parts.features,
                " features are no multiple of ", undivided->featuresMultiple,
                ", which its groups, pairs or blocks need");
  if (made.able_.empty()) {
    for (const Candidate& some : made.some_) {
      std::string limits;
      serves(*some.kernel, request, limits);
      made.unable_ += line(some.index, *some.kernel, limits);
    }
    made.unable_.pop_back();
    const std::string remedy =
        otherDevice ? platform.remedy()
                    : "compile the package with '" + request.parts.withoutSizes().text() + "' as well";
    return fail(otherDevice ? NORMC_FAILED_PRECONDITION : NORMC_NOT_FOUND, "no kernel of the package serves ",
                request.text, " here:\n", made.unable_, remedy.empty() ? "" : "\n", remedy);
  }
  std::sort(made.able_.begin(), made.able_.end(), precedes);
  std::sort(made.some_.begin(), made.some_.end(), precedes);
  selection = std::move(made);
  return NORMC_OK;
}

bool Selection::refuse(std::string why) {
  refusals_.push_back(std::move(why));
  return refusals_.size() < able_.size();
}

std::vector<size_t> Selection::narrower() const {
  std::vector<size_t> result;
  for (const Candidate& some : some_)
    if (precedes(some, able_[refusals_.size()])) result.push_back(some.index);
  return result;
}

void Selection::leaveOut(size_t kernel, const std::string& why) {
  const auto found =
      std::find_if(some_.begin(), some_.end(), [&](const Candidate& c) { return c.index == kernel; });
  unable_ += line(kernel, *found->kernel, "serves " + limitsText(*found->kernel) + "; " + why);
  some_.erase(found);
}

std::string Selection::reason() const {
  const size_t best = refusals_.size();
  if (best > 0)
    return best == 1 ? "the better one cannot be loaded here" : "the better ones cannot be loaded here";
  if (able_.size() == 1)
    return some_.empty() ? "it is the only one that serves the request here"
                         : "it is the only one that serves any number of rows";
  const std::string edge = Selection::edge(able_[0], able_[1]);
  return "of those that serve the request here, it " + (edge.empty() ? "comes first in the package" : edge);
}

std::string Selection::refused() const {
  std::string lines;
  for (size_t i = 0; i < refusals_.size(); ++i) lines += line(able_[i].index, *able_[i].kernel, refusals_[i]);
  return lines;
}

std::string Selection::rejected() const {
  std::string lines = refused();
  const Candidate& best = able_[refusals_.size()];
  const auto behind = [&](const Candidate& other) {
    const std::string edge = Selection::edge(best, other);
    lines += line(other.index, *other.kernel,
                  "kernel " + std::to_string(best.index) + " " +
                      (edge.empty() ? "comes before it in the package" : edge));
  };
  for (size_t i = refusals_.size() + 1; i < able_.size(); ++i) behind(able_[i]);
  for (const Candidate& some : some_)
    if (precedes(best, some)) behind(some);
  return lines + unable_;
}

}  // namespace normc::runtime
