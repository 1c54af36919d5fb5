// Memory that the runtime frees when it is unloaded.
//
// The C++ library that is linked into it allocates 71 KiB for exceptions where memory is out, and frees them
// only when it is asked to. In the static runtime it is that of the host.
namespace __gnu_cxx {
[[gnu::weak]] void __freeres();
}

namespace {

[[gnu::destructor]] void freeReserve() {
  if (__gnu_cxx::__freeres) __gnu_cxx::__freeres();
}

}  // namespace
