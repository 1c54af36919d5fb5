// Writes the standard package of the tests to a file, for the examples to run on.
#include <cstdio>

#include "tests/runtime/TestPackage.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto written = normc::test::standardPackage().write(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.errors()[0].message.c_str());
  return written ? 0 : 1;
}
