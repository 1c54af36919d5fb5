#include <gtest/gtest.h>

#include "tests/cli/Command.h"
#include "tools/normc/Npy.h"

namespace normc::cli {
namespace {

std::string errorOf(const std::string& content) {
  const auto read = parseNpy(content, "a.npy");
  return read ? "no error" : read.errors().front().message;
}

/// A file of version 1 with this header and data.
std::string fileWith(std::string header, const std::string& data) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += char(header.size() & 0xff);
  text += char(header.size() >> 8);
  return text + header + data;
}

TEST(Npy, ReadsBackWhatItWrites) {
  for (const DType type : {DType::F64, DType::F32, DType::F16, DType::I64, DType::U8}) {
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {5}, {0, 3}, {2, 3, 4}}) {
      NpyArray array{type, shape, {}};
      for (int64_t i = 0; i < array.elements() * bytes(type); ++i) array.data += char(i * 7);
      const std::string text = npyText(array);
      EXPECT_EQ((text.size() - array.data.size()) % 64, 0u);
      const auto read = parseNpy(text, "a.npy");
      ASSERT_TRUE(read) << errorOf(text);
      EXPECT_EQ(read->type, type);
      EXPECT_EQ(read->shape, shape);
      EXPECT_EQ(read->data, array.data);
    }
  }
}

TEST(Npy, WritesTheHeaderThatNumpyWrites) {
  const std::string text = npyText({DType::F32, {3}, std::string(12, '\0')});
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_TRUE(contains(text, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, ), }"));
  EXPECT_EQ(text[127], '\n');
}

TEST(Npy, ReadsVersionTwoAndBool) {
  std::string text("\x93NUMPY\x02\x00", 8);
  const std::string header = "{'shape': (2,), 'fortran_order': False, 'descr': '|b1'}";
  text += char(header.size());
  text += std::string(3, '\0') + header + "\x01" + std::string(1, '\0');
  const auto read = parseNpy(text, "a.npy");
  ASSERT_TRUE(read) << errorOf(text);
  EXPECT_EQ(read->type, DType::U8);
  EXPECT_EQ(read->shape, std::vector<int64_t>{2});
}

TEST(Npy, RefusesWhatIsNoArray) {
  EXPECT_EQ(errorOf("PK\x03\x04 and so on"), "a.npy is no .npy file: it does not begin as one");
  EXPECT_EQ(errorOf(""), "a.npy is no .npy file: it does not begin as one");
}

TEST(Npy, RefusesAnUnknownVersion) {
  EXPECT_EQ(errorOf(std::string("\x93NUMPY\x09\x00\x00\x00\x00\x00", 12)),
            "a.npy has version 9 of the .npy format; versions 1 to 3 are read");
}

TEST(Npy, RefusesEveryTruncation) {
  const std::string text = npyText({DType::F32, {3}, std::string(12, '\0')});
  for (size_t length = 6; length < text.size(); ++length)
    EXPECT_TRUE(contains(errorOf(text.substr(0, length)), "a.npy is truncated")) << length;
}

TEST(Npy, RefusesMoreDataThanAnnounced) {
  EXPECT_EQ(errorOf(fileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "12345")),
            "a.npy is too long: its header announces 4 bytes of data, it has 5");
}

TEST(Npy, RefusesOtherTypesOrdersAndHeaders) {
  EXPECT_TRUE(contains(errorOf(fileWith("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "1234")),
                       "holds elements of type '>f4'; normc run reads little-endian float64, float32, "
                       "float16, int64, uint8 and bool"));
  EXPECT_TRUE(
      contains(errorOf(fileWith("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
               "holds elements of type "));
  EXPECT_EQ(errorOf(fileWith("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "1234")),
            "a.npy is in Fortran order");
  EXPECT_TRUE(contains(errorOf(fileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "1234")),
                       "the shape in its header cannot be read"));
  EXPECT_TRUE(contains(errorOf(fileWith("nonsense", "1234")), "its header is not that of an array"));
}

TEST(Npy, RefusesAShapeThatNoMemoryHolds) {
  EXPECT_TRUE(
      contains(errorOf(fileWith(
                   "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 16)}", "1234")),
               "a.npy is truncated"));
}

}  // namespace
}  // namespace normc::cli
