// The architectures that GPU code is compiled for, and the devices that run them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace normc::runtime {

/// "sm_90" is compute capability 9.0. A suffix restricts code: `a` to exactly that capability, `f` to its
/// family, i.e. the same major and no older minor number.
struct Arch {
  int major = 0, minor = 0;
  char suffix = '\0';

  static std::optional<Arch> parse(std::string_view text);
  std::string text() const;
  int number() const { return 10 * major + minor; }

  bool sameCapability(const Arch& other) const { return number() == other.number(); }
  /// True if machine code for this runs on `device`.
  bool cubinRunsOn(const Arch& device) const;
  /// True if the driver can compile PTX for this to `device`.
  bool ptxRunsOn(const Arch& device) const;
};

/// A form in which a kernel can run on a device, the best last.
enum class Rung { None, Ptx, SameMajorCubin, ExactCubin };

}  // namespace normc::runtime
