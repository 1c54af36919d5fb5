// The text by which an operator of a host names a norm: a problem without its entry and its types, which
// follow from the call, and the numbers of the norm.
//
//   layer_norm[*x768] epsilon=1e-06
//   group_norm_segment[*x64x*]{groups=32,layout=channels_first}
//   rms_norm_residual[*x768]{round=normalized,stream=f32}
//   my_norm#3f2a91c04be7[*x1024] decay=0.99     a norm of the user: the hash of what it comes from
//
// A text is an attribute of a graph that is exported, so it is all that a process needs to run the graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normc::hosts {

/// The types of a call, by their names in a problem.
struct Types {
  std::string_view data = "f32";
  std::string_view params = {};  ///< empty: the default for `data`
  bool mask = false;
};

struct NormText {
  std::string name;    ///< "layer_norm"
  std::string source;  ///< what the norm comes from: a hash; empty for norms that are built in
  int64_t features = 0;
  bool segmented = false;         ///< three dimensions
  bool channelsFirst = false;     ///< segments x features x rows
  bool roundsNormalized = false;  ///< entries that compute y from data of 16 bits round x0
  std::string options;  ///< "groups=32,stream=f32", without the layout and without `round=normalized`
  std::vector<std::pair<std::string, double>> numbers;

  /// Reads a text. Throws std::invalid_argument with a sentence that names the part that is wrong.
  static NormText parse(std::string_view text);
  /// Returns the problem of a call. `channelsFirst` is the layout in memory.
  std::string problem(std::string_view entry, const Types&, bool channelsFirst) const;
};

/// True if the shape of a text is segments x features x rows.
bool isChannelsFirst(std::string_view text);

}  // namespace normc::hosts
