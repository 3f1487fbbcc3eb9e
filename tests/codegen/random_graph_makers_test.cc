#include "codegen/random_graph_makers.h"

#include <algorithm>
#include <numeric>

namespace sgtc::test {

// A friend of RandomGraph, so that makers read like the operators' definitions.
struct Makers {
  template <Op op>
  static ValueId plain(RandomGraph& r) {
    return r.e_.apply(op, {r.value()});
  }

  template <Op op>
  static ValueId of_bounded(RandomGraph& r) {
    return r.e_.apply(op, {r.bounded(r.value())});
  }

  template <Op op>
  static ValueId of_positive(RandomGraph& r) {
    return r.e_.apply(op, {r.positive(r.value())});
  }

  // Of something whose limits are no jumps of `op`: single precision reaches the limit of an erf or
  // a tanh where double does not.
  template <Op op>
  static ValueId of_scaled(RandomGraph& r) {
    return r.e_.apply(op, {r.e_.mul(r.value(), 1.37)});
  }

  // Inside (-0.9, 0.9), away from the ends of asin, acos and atanh.
  template <Op op>
  static ValueId of_inner(RandomGraph& r) {
    return r.e_.apply(op, {r.e_.mul(r.bounded(r.value()), 0.9)});
  }

  static ValueId acosh(RandomGraph& r) {
    return r.e_.apply(Op::kAcosh, {r.e_.add(r.positive(r.value()), 1.0)});
  }

  static ValueId cast(RandomGraph& r) {
    const ValueId wide = r.e_.cast(r.value(), DType::kFloat64);
    return r.e_.cast(r.e_.mul(wide, 0.75), DType::kFloat32);
  }

  template <Op op>
  static ValueId binary(RandomGraph& r) {
    const ValueId a = r.value();
    const ValueId b = r.broadcast_like(r.e_.shape(a));
    return r.chance(0.5) ? r.e_.apply(op, {a, b}) : r.e_.apply(op, {b, a});
  }

  static ValueId div(RandomGraph& r) {
    const ValueId a = r.value();
    return r.e_.div(a, r.positive(r.broadcast_like(r.e_.shape(a))));
  }

  static ValueId pow(RandomGraph& r) {
    const ValueId a = r.value();
    const ValueId exponent =
        r.chance(0.3) ? r.e_.constant(DType::kFloat32, static_cast<double>(r.integer(1, 3)))
                      : r.bounded(r.broadcast_like(r.e_.shape(a)));
    return r.e_.apply(Op::kPow, {r.positive(a), exponent});
  }

  // Half-way between multiples of the divisor, where the remainder does not jump.
  template <Op op>
  static ValueId remainder(RandomGraph& r) {
    const ValueId a = r.e_.mul(r.bounded(r.value()), 0.2);
    return r.e_.apply(op, {r.e_.add(a, 2.5), r.e_.constant(DType::kFloat32, 1)});
  }

  static ValueId where(RandomGraph& r) {
    const ValueId a = r.value();
    const Shape shape = r.e_.shape(a);
    const ValueId chosen = r.integers(shape, 0, 1);
    return r.e_.where(r.e_.compare(Op::kEqual, chosen, 1), a, r.broadcast_like(shape));
  }

  static ValueId reshape(RandomGraph& r) {
    const ValueId x = r.value();
    const Shape shape = r.e_.shape(x);
    Shape target{element_count(shape)};
    if (shape.size() > 1 && r.chance(0.5)) {
      target = {shape[0], element_count({shape.begin() + 1, shape.end()})};
    }
    if (r.chance(0.3)) target.insert(target.begin(), 1);
    return r.e_.apply(Op::kReshape, {x}, {{"shape", target}});
  }

  static ValueId transpose(RandomGraph& r) {
    const ValueId x = r.value(2);
    if (x == kNone) return kNone;
    std::vector<int64_t> perm = all_axes(r.e_.rank(x));
    std::shuffle(perm.begin(), perm.end(), r.random_);
    return r.e_.apply(Op::kTranspose, {x}, {{"perm", perm}});
  }

  static ValueId broadcast(RandomGraph& r) {
    const ValueId x = r.value(0, 3);
    if (x == kNone) return kNone;
    Shape target = r.e_.shape(x);
    for (int64_t& size : target) size = size == 1 ? r.integer(1, 3) : size;
    if (r.chance(0.5)) target.insert(target.begin(), r.integer(1, 3));
    return r.e_.apply(Op::kBroadcast, {x}, {{"shape", target}});
  }

  static ValueId slice(RandomGraph& r) {
    const ValueId x = r.value(1);
    if (x == kNone) return kNone;
    Shape starts, sizes, steps;
    for (int64_t size : r.e_.shape(x)) {
      const int64_t step = size > 1 ? r.integer(1, 2) : 1;
      const int64_t count = r.integer(size > 0 ? 1 : 0, (size + step - 1) / step);
      const int64_t first = count > 0 ? r.integer(0, size - 1 - (count - 1) * step) : 0;
      const bool backwards = count > 1 && r.chance(0.3);
      starts.push_back(backwards ? first + (count - 1) * step : first);
      sizes.push_back(count);
      steps.push_back(backwards ? -step : step);
    }
    return r.e_.apply(Op::kSlice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
  }

  static ValueId pad(RandomGraph& r) {
    const ValueId x = r.value(1, 3);
    if (x == kNone) return kNone;
    Shape low, high;
    for (int64_t d = 0; d < r.e_.rank(x); ++d) {
      low.push_back(r.integer(0, 2));
      high.push_back(r.integer(0, 1));
    }
    return r.e_.apply(Op::kPad, {x, r.parameter({})}, {{"low", low}, {"high", high}});
  }

  static ValueId concat(RandomGraph& r) {
    const ValueId x = r.value(1);
    if (x == kNone) return kNone;
    const int64_t axis = r.integer(0, r.e_.rank(x) - 1);
    Shape other = r.e_.shape(x);
    other[static_cast<size_t>(axis)] = r.integer(0, 3);
    std::vector<ValueId> parts{x, r.like(other)};
    if (r.chance(0.3)) parts.push_back(x);
    return r.e_.apply(Op::kConcat, parts, {{"axis", axis}});
  }

  static ValueId gather(RandomGraph& r) {
    const ValueId x = r.value(1, 3);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    const int64_t size = r.e_.size(x, axis);
    // Without a padding row, which gets no gradient whatever the difference is.
    return r.e_.apply(Op::kGather, {x, r.integers(r.shape(0, 1), -size, size - 1)},
                      {{"axis", axis}});
  }

  static ValueId gather_elements(RandomGraph& r) {
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    Shape shape = r.e_.shape(x);
    shape[static_cast<size_t>(axis)] = r.integer(0, 4);
    const int64_t size = r.e_.size(x, axis);
    return r.e_.apply(Op::kGatherElements, {x, r.integers(shape, -size, size - 1)},
                      {{"axis", axis}});
  }

  static ValueId gather_nd(RandomGraph& r) {
    const ValueId x = r.value(2);
    if (x == kNone || element_count(r.e_.shape(x)) == 0) return kNone;
    const bool batched = r.chance(0.5);
    const int64_t size = r.e_.size(x, batched ? 1 : 0);
    const Shape shape =
        batched ? Shape{r.e_.size(x, 0), r.integer(1, 3), 1} : Shape{r.integer(1, 4), 1};
    return r.e_.apply(Op::kGatherNd, {x, r.integers(shape, -size, size - 1)},
                      {{"batch_dims", int64_t{batched}}});
  }

  static ValueId pick(RandomGraph& r) {
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    Shape shape = r.e_.shape(x);
    shape[static_cast<size_t>(axis)] = 1;
    return r.e_.apply(Op::kPick, {x, r.integers(shape, 0, r.e_.size(x, axis) - 1)},
                      {{"axis", axis}});
  }

  static ValueId scatter_add(RandomGraph& r) {
    const ValueId x = r.value(1, 3);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    const int64_t size = r.e_.size(x, axis);
    Shape updates = r.e_.shape(x);
    updates[static_cast<size_t>(axis)] = r.integer(0, 4);
    const ValueId indices = r.integers({updates[static_cast<size_t>(axis)]}, -size, size - 1);
    return r.e_.apply(Op::kScatterAdd, {x, indices, r.like(updates)}, {{"axis", axis}});
  }

  // With `add`, `max` and `min` any indices; for the others each element once.
  static ValueId scatter_elements(RandomGraph& r) {
    static const char* const kReductions[] = {"none", "add", "mul", "max", "min"};
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    const std::string reduction = kReductions[r.integer(0, 4)];
    const int64_t size = r.e_.size(x, axis);
    Shape shape = r.e_.shape(x);
    const bool once = reduction == "none";
    shape[static_cast<size_t>(axis)] = once ? 1 : r.integer(1, 3);
    return r.e_.apply(Op::kScatterElements, {x, r.integers(shape, -size, size - 1), r.like(shape)},
                      {{"axis", axis}, {"reduction", reduction}});
  }

  static ValueId scatter_nd(RandomGraph& r) {
    static const char* const kReductions[] = {"add", "mul", "max", "min"};
    const ValueId x = r.value(1);
    if (x == kNone || r.e_.size(x, 0) == 0) return kNone;
    const int64_t size = r.e_.size(x, 0), count = r.integer(1, 3);
    Shape updates = r.e_.shape(x);
    updates[0] = count;
    return r.e_.apply(Op::kScatterNd, {x, r.integers({count, 1}, -size, size - 1), r.like(updates)},
                      {{"reduction", std::string(kReductions[r.integer(0, 3)])}});
  }

  template <Op op>
  static ValueId reduction(RandomGraph& r) {
    const ValueId x = r.value();
    const bool ordered = op == Op::kReduceMax || op == Op::kReduceMin;
    if (ordered && element_count(r.e_.shape(x)) == 0) return kNone;
    return r.e_.apply(op, {x}, {{"axes", r.axes(x)}});
  }

  static ValueId cum_sum(RandomGraph& r) {
    const ValueId x = r.value(1);
    if (x == kNone) return kNone;
    return r.e_.apply(Op::kCumSum, {x},
                      {{"axis", r.integer(0, r.e_.rank(x) - 1)},
                       {"exclusive", r.integer(0, 1)},
                       {"reverse", r.integer(0, 1)}});
  }

  static ValueId top_k(RandomGraph& r) {
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    return r.graph_
        .add_node(
            Op::kTopK, {x},
            {{"axis", axis}, {"k", r.integer(1, r.e_.size(x, axis))}, {"largest", r.integer(0, 1)}})
        .front();
  }

  static ValueId matmul(RandomGraph& r) {
    const ValueId a = r.value(2);
    if (a == kNone) return kNone;
    const Shape shape = r.e_.shape(a);
    const bool turn_a = r.chance(0.3), turn_b = r.chance(0.3);
    const int64_t inner = turn_a ? shape[shape.size() - 2] : shape.back(), outer = r.integer(1, 5);
    Shape other{inner, outer};
    if (turn_b) std::swap(other[0], other[1]);
    if (r.chance(0.5)) other.insert(other.begin(), shape.begin(), shape.end() - 2);
    return r.e_.apply(Op::kMatMul, {a, r.like(other)},
                      {{"transpose_a", int64_t{turn_a}}, {"transpose_b", int64_t{turn_b}}});
  }

  static Attributes window(RandomGraph& r, bool dilated) {
    return {{"strides", Shape{r.integer(1, 2), r.integer(1, 2)}},
            {"pads", Shape{r.integer(0, 1), r.integer(0, 1), r.integer(0, 1), r.integer(0, 1)}},
            {"dilations", Shape{dilated ? r.integer(1, 2) : 1, 1}}};
  }

  static ValueId image(RandomGraph& r) {
    return r.like({r.integer(1, 2), 2 * r.integer(1, 2), r.integer(3, 5), r.integer(3, 5)});
  }

  static ValueId conv(RandomGraph& r) {
    const ValueId x = image(r);
    const int64_t groups = r.integer(1, 2);
    Attributes attributes = window(r, true);
    attributes.set("groups", groups);
    const ValueId w = r.parameter({2 * groups, r.e_.size(x, 1) / groups, 2, r.integer(1, 2)});
    return r.e_.apply(Op::kConv, {x, w}, attributes);
  }

  static ValueId conv_input_grad(RandomGraph& r) {
    const ValueId dy = r.like({1, 2, r.integer(1, 3), r.integer(1, 3)});
    const ValueId w = r.parameter({2, r.integer(1, 3), 2, 2});
    const int64_t stride = r.integer(1, 2);
    return r.e_.apply(Op::kConvInputGrad, {dy, w},
                      {{"strides", Shape{stride, stride}},
                       {"pads", Shape{0, 0, 0, 0}},
                       {"dilations", Shape{1, 1}},
                       {"groups", int64_t{1}},
                       {"input", Shape{(r.e_.size(dy, 2) - 1) * stride + 2,
                                       (r.e_.size(dy, 3) - 1) * stride + 2}}});
  }

  template <Op op>
  static ValueId pool(RandomGraph& r) {
    const ValueId x = image(r);
    Attributes attributes = window(r, false);
    const Shape kernel{2, r.integer(2, 3)};
    const Shape strides = attributes.integers("strides"), pads = attributes.integers("pads");
    Shape output;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t size = r.e_.size(x, static_cast<int64_t>(i) + 2) + pads[i] + pads[i + 2];
      output.push_back((size - kernel[i]) / strides[i] + 1);
    }
    attributes.set("kernel", kernel);
    attributes.set("output", output);
    if (op == Op::kAveragePool) attributes.set("count_include_pad", r.integer(0, 1));
    return r.e_.apply(op, {x}, attributes);
  }

  template <Op op>
  static ValueId softmax(RandomGraph& r) {
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    return r.e_.apply(op, {x}, {{"axis", axis}});
  }

  static ValueId normalize(RandomGraph& r) {
    const ValueId x = r.value(1);
    const int64_t axis = x == kNone ? -1 : r.axis(x);
    if (axis < 0) return kNone;
    return r.graph_.add_node(Op::kNormalize, {x}, {{"axes", Shape{axis}}, {"epsilon", 0.1}})
        .front();
  }

  static ValueId attention(RandomGraph& r) {
    const int64_t batch = r.integer(1, 2), groups = r.integer(1, 2),
                  heads = groups * r.integer(1, 2);
    const int64_t queries = r.integer(1, 5), keys = queries + r.integer(0, 2),
                  depth = r.integer(1, 4);
    return r.graph_
        .add_node(Op::kAttention,
                  {r.like({batch, heads, queries, depth}), r.like({batch, groups, keys, depth}),
                   r.like({batch, groups, keys, r.integer(1, 4)})},
                  {{"scale", 0.5}, {"causal", r.integer(0, 1)}})
        .front();
  }
};

const std::vector<MakerOf>& makers() {
  static const std::vector<MakerOf> kMakers = {
      {Op::kNeg, Makers::plain<Op::kNeg>},
      {Op::kAbs, Makers::plain<Op::kAbs>},
      {Op::kSign, Makers::plain<Op::kSign>},
      {Op::kExp, Makers::of_bounded<Op::kExp>},
      {Op::kLog, Makers::of_positive<Op::kLog>},
      {Op::kSqrt, Makers::of_positive<Op::kSqrt>},
      {Op::kRsqrt, Makers::of_positive<Op::kRsqrt>},
      {Op::kReciprocal, Makers::of_positive<Op::kReciprocal>},
      {Op::kSin, Makers::plain<Op::kSin>},
      {Op::kCos, Makers::plain<Op::kCos>},
      {Op::kTan, Makers::of_inner<Op::kTan>},
      {Op::kAsin, Makers::of_inner<Op::kAsin>},
      {Op::kAcos, Makers::of_inner<Op::kAcos>},
      {Op::kAtan, Makers::plain<Op::kAtan>},
      {Op::kSinh, Makers::of_bounded<Op::kSinh>},
      {Op::kCosh, Makers::of_bounded<Op::kCosh>},
      {Op::kTanh, Makers::plain<Op::kTanh>},
      {Op::kAsinh, Makers::plain<Op::kAsinh>},
      {Op::kAcosh, Makers::acosh},
      {Op::kAtanh, Makers::of_inner<Op::kAtanh>},
      {Op::kErf, Makers::plain<Op::kErf>},
      {Op::kSigmoid, Makers::plain<Op::kSigmoid>},
      {Op::kSoftplus, Makers::plain<Op::kSoftplus>},
      {Op::kFloor, Makers::of_scaled<Op::kFloor>},
      {Op::kCeil, Makers::of_scaled<Op::kCeil>},
      {Op::kRound, Makers::of_scaled<Op::kRound>},
      {Op::kCast, Makers::cast},
      {Op::kAdd, Makers::binary<Op::kAdd>},
      {Op::kSub, Makers::binary<Op::kSub>},
      {Op::kMul, Makers::binary<Op::kMul>},
      {Op::kDiv, Makers::div},
      {Op::kPow, Makers::pow},
      {Op::kMod, Makers::remainder<Op::kMod>},
      {Op::kFmod, Makers::remainder<Op::kFmod>},
      {Op::kMax, Makers::binary<Op::kMax>},
      {Op::kMin, Makers::binary<Op::kMin>},
      {Op::kWhere, Makers::where},
      {Op::kReshape, Makers::reshape},
      {Op::kTranspose, Makers::transpose},
      {Op::kBroadcast, Makers::broadcast},
      {Op::kSlice, Makers::slice},
      {Op::kPad, Makers::pad},
      {Op::kConcat, Makers::concat},
      {Op::kGather, Makers::gather},
      {Op::kGatherElements, Makers::gather_elements},
      {Op::kGatherNd, Makers::gather_nd},
      {Op::kPick, Makers::pick},
      {Op::kScatterAdd, Makers::scatter_add},
      {Op::kScatterElements, Makers::scatter_elements},
      {Op::kScatterNd, Makers::scatter_nd},
      {Op::kReduceSum, Makers::reduction<Op::kReduceSum>},
      {Op::kReduceMax, Makers::reduction<Op::kReduceMax>},
      {Op::kReduceMin, Makers::reduction<Op::kReduceMin>},
      {Op::kReduceProd, Makers::reduction<Op::kReduceProd>},
      {Op::kCumSum, Makers::cum_sum},
      {Op::kTopK, Makers::top_k},
      {Op::kMatMul, Makers::matmul},
      {Op::kConv, Makers::conv},
      {Op::kConvInputGrad, Makers::conv_input_grad},
      {Op::kMaxPool, Makers::pool<Op::kMaxPool>},
      {Op::kAveragePool, Makers::pool<Op::kAveragePool>},
      {Op::kSoftmax, Makers::softmax<Op::kSoftmax>},
      {Op::kLogSoftmax, Makers::softmax<Op::kLogSoftmax>},
      {Op::kNormalize, Makers::normalize},
      {Op::kAttention, Makers::attention},
  };
  return kMakers;
}

}  // namespace sgtc::test
