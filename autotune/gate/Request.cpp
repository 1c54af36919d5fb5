#include "autotune/gate/Request.h"

namespace normc::gate {

std::string requestOf(const Problem& problem, const Extents& e) {
  std::string text = problem.text();
  const size_t open = text.find('['), close = text.find(']');
  const std::string features = problem.features ? std::to_string(*problem.features) : "*";
  std::string shape = problem.segmented ? std::to_string(e.segments) + "x" : "";
  shape += problem.layout == Layout::ChannelsFirst ? features + "x" + std::to_string(e.rows)
                                                   : std::to_string(e.rows) + "x" + features;
  return text.replace(open + 1, close - open - 1, shape);
}

}  // namespace normc::gate
