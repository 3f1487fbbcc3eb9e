// Convolutions and their transposes.
#include "import/checks.h"
#include "import/window.h"
#include "ir/limits.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

ValueId add_channel_bias(Lowering& n, ValueId y, int index) {
  if (!n.has_input(index)) return y;
  const ValueId bias = n.input(index);
  const int64_t channels = n.shape(y)[1];
  if (n.shape(bias) != Shape{channels}) {
    throw Error("bias: expected shape [" + std::to_string(channels) + "], found " +
                to_string(n.shape(bias)));
  }
  Shape shape(n.shape(y).size(), 1);
  shape[1] = channels;
  return n.add(y, n.reshape(bias, shape));
}

ValueIds lower_conv(Lowering& n) {
  const ValueId x = n.input(0), w = n.input(1);
  const Window window = window_of(n, spatial_sizes(n.shape(w)), spatial_sizes(n.shape(x)));
  const ValueId y = n.add(Op::kConv, {x, w}, convolution_attributes(window, n.integer("group", 1)));
  return {add_channel_bias(n, y, 2)};
}

// Output sizes of a transposed convolution; settles the pads that auto_pad or output_shape ask for.
Shape transposed_output(Lowering& n, Window& window, const Shape& input) {
  const std::string mode = n.text("auto_pad", "NOTSET");
  const std::vector<int64_t> extra =
      n.integers("output_padding", std::vector<int64_t>(input.size(), 0));
  std::vector<int64_t> wanted = n.integers("output_shape");
  if (wanted.size() == input.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (extra.size() != input.size() || (!wanted.empty() && wanted.size() != input.size())) {
    throw Error("output_padding and output_shape: expected " + std::to_string(input.size()) +
                " values");
  }
  Shape output(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    checked_factor(extra[i], 0, "attribute \"output_padding\"");
    if (!wanted.empty()) check_size({n.dtype(n.input(0)), {wanted[i]}});
    const int64_t full = window.strides[i] * (input[i] - 1) + extra[i] + window.span(i);
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (same || !wanted.empty()) {
      output[i] = wanted.empty() ? input[i] * window.strides[i] : wanted[i];
      split_padding(window, i, full - output[i], mode == "SAME_UPPER");
    } else {
      output[i] = full - window.padding(i);
    }
    if (output[i] < 0) throw Error("the pads are larger than the output");
  }
  return output;
}

// The gradient of a convolution towards its input, with the weight [C, M/group, …] as it is.
ValueIds lower_conv_transpose(Lowering& n) {
  const ValueId x = n.input(0), w = n.input(1);
  const Shape input = spatial_sizes(n.shape(x));
  Window window = window_of(n, spatial_sizes(n.shape(w)), input, true);
  const Shape output = transposed_output(n, window, input);
  Attributes attributes = convolution_attributes(window, n.integer("group", 1));
  attributes.set("input", output);
  return {add_channel_bias(n, n.add(Op::kConvInputGrad, {x, w}, attributes), 2)};
}

// ONNX Runtime's ConvGrad: (dY, X, W) -> dX, dW, dB.
ValueIds lower_conv_gradient(Lowering& n) {
  const ValueId dy = n.input(0), x = n.input(1), w = n.input(2);
  const Shape input = spatial_sizes(n.shape(x)), kernel = spatial_sizes(n.shape(w));
  const Window window = window_of(n, kernel, input);
  Attributes of_input = convolution_attributes(window, n.integer("group", 1));
  Attributes of_weight = of_input;
  of_input.set("input", input);
  of_weight.set("kernel", kernel);
  std::vector<int64_t> axes = all_axes(n.rank(dy));
  axes.erase(axes.begin() + 1);
  const ValueId bias = n.reduce(Op::kReduceSum, dy, axes);
  return {n.add(Op::kConvInputGrad, {dy, w}, of_input),
          n.add(Op::kConvWeightGrad, {x, dy}, of_weight), n.reshape(bias, {n.shape(dy)[1]})};
}

// Adds up blocks [N, C·block, positions] where they overlap: the gradient of cutting an image into
// blocks, which is a convolution with the identity.
ValueIds lower_col2im(Lowering& n) {
  const ValueId x = n.input(0);
  const Shape shape = n.shape(x);
  const Shape image = n.integers_input(1, "the shape of the image");
  const Shape block = n.integers_input(2, "the shape of the blocks");
  for (const int64_t length : block) checked_factor(length, 1, "the shape of the blocks");
  check_size({n.dtype(x), image});
  check_size({n.dtype(x), block});
  const int64_t size = element_count(block);
  if (shape.size() != 3 || block.size() != image.size() || size < 1 || shape[1] % size != 0) {
    throw Error("expected [N, C·" + std::to_string(size) + ", positions] and an image of " +
                std::to_string(block.size()) + " dimensions, found " + to_string(shape) + " and " +
                to_string(image));
  }
  const Window window = window_of(n, block, image);
  const int64_t channels = shape[1] / size;
  Shape pieces{shape[0] * channels, size}, kernel{size, 1}, target{shape[0], channels};
  for (size_t i = 0; i < image.size(); ++i) {
    if (image[i] + window.padding(i) < window.span(i)) {
      throw Error("the blocks are larger than the padded image " + to_string(image));
    }
    pieces.push_back((image[i] + window.padding(i) - window.span(i)) / window.strides[i] + 1);
  }
  if (element_count(pieces) != element_count(shape)) {
    throw Error("expected as many positions as blocks in the padded image, found " +
                std::to_string(shape[2]));
  }
  kernel.insert(kernel.end(), block.begin(), block.end());
  target.insert(target.end(), image.begin(), image.end());
  const ValueId rows = n.iota({size, 1}, 0, DType::kInt64);
  const ValueId columns = n.iota({1, size}, 1, DType::kInt64);
  const ValueId identity = n.cast(n.add(Op::kEqual, {rows, columns}), n.dtype(x));
  Attributes attributes = convolution_attributes(window, 1);
  attributes.set("input", image);
  const ValueId y =
      n.add(Op::kConvInputGrad, {n.reshape(x, pieces), n.reshape(identity, kernel)}, attributes);
  return {n.reshape(y, target)};
}

const std::vector<Rule> kRules = {
    {"", "Conv", {1, 11, 22}, lower_conv},
    {"", "ConvTranspose", {1, 11, 22}, lower_conv_transpose},
    {"", "Col2Im", {18}, lower_col2im},
    {"com.microsoft", "ConvGrad", {1}, lower_conv_gradient},
};

}  // namespace

std::span<const Rule> convolution_rules() { return kRules; }

}  // namespace sgtc
