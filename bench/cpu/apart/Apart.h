// The peer "apart": the bare norm by its own default kernel of this compiler, and one loop for all that
// stands on each side of it (Loops.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "autotune/measure/Contestant.h"
#include "autotune/measure/Tensors.h"
#include "bench/cpu/apart/Neighbours.h"
#include "bench/kit/Kernels.h"

namespace normc::bench::apart {

/// How the loops store, and where lies what they and the norm hand to each other. Which is fastest depends on
/// machine and size, so all are timed.
struct Way {
  bool streaming = false;  ///< the loops store past the caches
  bool inPlace = false;    ///< intermediate tensors lie in the memory of the output

  std::string text() const;
};
inline constexpr Way kWays[] = {{false, false}, {false, true}, {true, false}, {true, true}};

/// Memory for intermediate tensors, which all that run in turns on tensors of one size share.
class Scratch {
 public:
  std::shared_ptr<const Held> of(Role, int64_t bytes);

 private:
  std::map<Role, std::shared_ptr<const Held>> held_;
};

/// Returns the contestant, which writes the same outputs in `tensors` as the problem's own kernel. `kernels`
/// has `bareOf(problem)`, and of a backward also its forward. Null where it does not exist: `why` says then
/// what is missing; it stays empty where only this way does not exist, because it is the same as another.
std::unique_ptr<Contestant> make(const Kernels& kernels, const Problem&, const Tensors&, int threads, Way,
                                 Scratch&, std::string& why);

}  // namespace normc::bench::apart
