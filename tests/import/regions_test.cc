// Samples of regions, and filters of spectra.
#include "import/helper.h"
#include "support/catch.h"

using namespace sgtc::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

// Regions of an image whose cells are 4y + x, which sampling between cells continues.
std::vector<double> aligned(const std::string& attributes, const std::vector<double>& region,
                            int opset = 21, int cells = 4) {
  std::vector<double> image;
  for (int k = 0; k < 16; ++k) image.push_back(k);
  const std::string text = "g (float[1, 1, 4, 4] x, float[1, 4] r, int64[1] b) => (float[" +
                           std::to_string(cells) + "] y) { a = RoiAlign <" + attributes +
                           "> (x, r, b) n = Constant <value = int64[1] {-1}> () "
                           "y = Reshape (a, n) }";
  return output_of(text, {{"x", image}, {"r", region}, {"b", {0}}}, opset);
}

const std::string kTwoByTwo = "output_height = 2, output_width = 2, sampling_ratio = ";

}  // namespace

TEST_CASE("a region is the mean or maximum of its samples") {
  CHECK(close(aligned(kTwoByTwo + "1", {0.5, 0.5, 2.5, 2.5}), {2.5, 3.5, 6.5, 7.5}));
  CHECK(close(aligned(kTwoByTwo + "2", {0.5, 0.5, 2.5, 2.5}), {2.5, 3.5, 6.5, 7.5}));
  CHECK(close(aligned(kTwoByTwo + "1, coordinate_transformation_mode = \"output_half_pixel\"",
                      {0, 0, 2, 2}),
              {2.5, 3.5, 6.5, 7.5}));
  CHECK(close(aligned(kTwoByTwo + "1, spatial_scale = 0.5", {1, 1, 5, 5}), {2.5, 3.5, 6.5, 7.5}));
  // By ONNX's definition the largest product of a cell and its weight.
  CHECK(close(aligned("mode = \"max\", sampling_ratio = 1", {2, 2, 3, 3}, 21, 1), {10}));
}

TEST_CASE("regions at and beyond the border") {
  CHECK(close(aligned("sampling_ratio = 1", {10, 10, 12, 12}, 21, 1), {0}));
  // Between the border and one cell beyond it counts the border.
  CHECK(close(aligned("sampling_ratio = 1", {-0.5, 1.5, 0.5, 2.5}, 21, 1), {6}));
  CHECK(close(aligned("sampling_ratio = 1", {4, 4, 4.5, 4.5}, 21, 1), {15}));
  // Before half pixels a region had at least one cell.
  CHECK(close(aligned("sampling_ratio = 1", {1, 1, 1, 1}, 10, 1), {7.5}));
}

TEST_CASE("regions that are refused") {
  const auto error = [](const std::string& attributes, const std::string& regions) {
    return import_error("g (float[1, 1, 4, 4] x, float" + regions +
                        " r, int64[1] b) => (float[1, 1, 1, 1] y) { y = RoiAlign <" + attributes +
                        "> (x, r, b) }");
  };
  CHECK_THAT(error("output_height = 1", "[1, 4]"),
             ContainsSubstring("\"sampling_ratio\": expected 1 or more, found 0"));
  CHECK_THAT(error("mode = \"sum\"", "[1, 4]"), ContainsSubstring("expected avg or max"));
  CHECK_THAT(error("sampling_ratio = 1", "[1, 5]"), ContainsSubstring("regions [R, 4]"));
  CHECK_THAT(error("output_width = 0", "[1, 4]"), ContainsSubstring("expected 1 to"));
}

TEST_CASE("filters of the mel scale") {
  const auto matrix = [](const std::string& numbers) {
    return "g () => (float[N, M] y) <" + numbers + "> { y = MelWeightMatrix (f, n, r, l, h) }";
  };
  const std::string one = "int64 f = {1}, int64 n = {3}, int64 r = {4}, ";
  CHECK(output_of(matrix(one + "float l = {2}, float h = {2}")) == std::vector<double>{0, 1});
  CHECK_THAT(import_error(matrix(one + "float l = {1}, float h = {3}")),
             ContainsSubstring("half of the sample rate"));
}
