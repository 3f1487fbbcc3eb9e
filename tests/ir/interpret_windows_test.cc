// Convolutions, pools and compositions of the interpreter: values by hand, gradients by their
// defining identities.
#include <cmath>

#include "ir/interpret.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

using Values = std::vector<double>;

// A tensor of f64 with values that look random.
Tensor sample(const Shape& shape, double phase) {
  Values values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(1.7 * static_cast<double>(i) + phase);
  }
  return Tensor({DType::kFloat64, shape}, values);
}

std::vector<Tensor> call(Op op, const std::vector<Tensor>& operands, const Attributes& attributes) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  return evaluate(op, pointers, attributes);
}

double dot(const Tensor& a, const Tensor& b) {
  REQUIRE(a.type == b.type);
  double sum = 0;
  for (size_t i = 0; i < a.reals.size(); ++i) sum += a.reals[i] * b.reals[i];
  return sum;
}

// d f / d operands[which] along `direction` by central differences.
template <typename Function>
double slope(Function f, std::vector<Tensor> operands, size_t which, const Tensor& direction) {
  const double h = 1e-5;
  const auto at = [&](double step) {
    std::vector<Tensor> moved = operands;
    for (size_t i = 0; i < direction.reals.size(); ++i) {
      moved[which].reals[i] += step * direction.reals[i];
    }
    return f(moved);
  };
  return (at(h) - at(-h)) / (2 * h);
}

Tensor f64(const Shape& shape, const Values& values) {
  return Tensor({DType::kFloat64, shape}, values);
}

Attributes with(Attributes attributes, const std::string& name, const Shape& value) {
  attributes.set(name, value);
  return attributes;
}

struct ConvCase {
  Shape x, w;
  Attributes attributes;
};

std::vector<ConvCase> conv_cases() {
  return {{{2, 4, 7},
           {6, 2, 3},
           {{"strides", Shape{2}},
            {"pads", Shape{1, 0}},
            {"dilations", Shape{2}},
            {"groups", int64_t{2}}}},
          {{1, 3, 5, 6},
           {2, 3, 3, 2},
           {{"strides", Shape{1, 2}},
            {"pads", Shape{1, 0, 2, 1}},
            {"dilations", Shape{1, 1}},
            {"groups", int64_t{1}}}},
          {{1, 2, 3, 3, 4},
           {2, 1, 2, 2, 2},
           {{"strides", Shape{1, 1, 2}},
            {"pads", Shape{0, 0, 1, 0, 1, 0}},
            {"dilations", Shape{1, 1, 1}},
            {"groups", int64_t{2}}}}};
}

Attributes pool_attributes() {
  return {{"kernel", Shape{2, 3}},
          {"strides", Shape{2, 2}},
          {"pads", Shape{0, 1, 1, 1}},
          {"dilations", Shape{1, 1}},
          {"output", Shape{3, 3}}};
}

}  // namespace

TEST_CASE("a convolution by hand") {
  const Attributes attributes = {{"strides", Shape{1}},
                                 {"pads", Shape{1, 1}},
                                 {"dilations", Shape{1}},
                                 {"groups", int64_t{1}}};
  const Tensor x = f64({1, 1, 4}, {1, 2, 3, 4});
  CHECK(call(Op::kConv, {x, f64({1, 1, 3}, {1, 10, 100})}, attributes)[0].reals ==
        Values{210, 321, 432, 43});
}

TEST_CASE("the input gradient of a convolution is its transpose, with output padding") {
  const Attributes attributes = {{"strides", Shape{2}},
                                 {"pads", Shape{1, 1}},
                                 {"dilations", Shape{1}},
                                 {"groups", int64_t{1}},
                                 {"input", Shape{4}}};
  const Tensor x = f64({1, 1, 2}, {1, 2});
  CHECK(call(Op::kConvInputGrad, {x, f64({1, 1, 3}, {1, 10, 100})}, attributes)[0].reals ==
        Values{10, 102, 20, 200});
}

TEST_CASE("gradients of convolutions are adjoint to the convolution") {
  for (const ConvCase& c : conv_cases()) {
    const Tensor x = sample(c.x, 0.1);
    const Tensor w = sample(c.w, 0.7);
    const Tensor y = call(Op::kConv, {x, w}, c.attributes)[0];
    const Tensor dy = sample(y.type.shape, 0.3);
    const Tensor dx = call(Op::kConvInputGrad, {dy, w},
                           with(c.attributes, "input", {c.x.begin() + 2, c.x.end()}))[0];
    const Tensor dw = call(Op::kConvWeightGrad, {x, dy},
                           with(c.attributes, "kernel", {c.w.begin() + 2, c.w.end()}))[0];
    CHECK(dot(x, dx) == Approx(dot(y, dy)));
    CHECK(dot(w, dw) == Approx(dot(y, dy)));
  }
}

TEST_CASE("pools by hand, with padding and a last window that sticks out") {
  const Attributes attributes = {{"kernel", Shape{2}},
                                 {"strides", Shape{2}},
                                 {"pads", Shape{1, 0}},
                                 {"dilations", Shape{1}},
                                 {"output", Shape{3}}};
  const Tensor x = f64({1, 1, 4}, {-1, -2, -3, -5});
  CHECK(call(Op::kMaxPool, {x}, attributes)[0].reals == Values{-1, -2, -5});
  CHECK(call(Op::kAveragePool, {x}, attributes)[0].reals == Values{-1, -2.5, -5});
  Attributes include = attributes;
  include.set("count_include_pad", int64_t{1});
  CHECK(call(Op::kAveragePool, {x}, include)[0].reals == Values{-0.5, -2.5, -5});
}

TEST_CASE("the gradient of a max pool goes to the first maximum") {
  const Attributes attributes = {{"kernel", Shape{2}},
                                 {"strides", Shape{1}},
                                 {"pads", Shape{0, 0}},
                                 {"dilations", Shape{1}},
                                 {"output", Shape{3}}};
  const Tensor x = f64({1, 1, 4}, {2, 2, 1, 3});
  const Tensor y = call(Op::kMaxPool, {x}, attributes)[0];
  CHECK(y.reals == Values{2, 2, 3});
  CHECK(call(Op::kMaxPoolGrad, {x, f64({1, 1, 3}, {1, 10, 100})}, attributes)[0].reals ==
        Values{1, 10, 0, 100});
}

TEST_CASE("gradients of pools agree with differences") {
  const Tensor x = sample({2, 2, 5, 6}, 0.2);
  const Tensor direction = sample(x.type.shape, 0.9);
  const Attributes attributes = pool_attributes();
  const Tensor y = call(Op::kMaxPool, {x}, attributes)[0];
  const Tensor dy = sample(y.type.shape, 0.5);
  const auto maximum = [&](const std::vector<Tensor>& at) {
    return dot(call(Op::kMaxPool, at, attributes)[0], dy);
  };
  CHECK(dot(call(Op::kMaxPoolGrad, {x, dy}, attributes)[0], direction) ==
        Approx(slope(maximum, {x}, 0, direction)));
  for (const int64_t include : {0, 1}) {
    Attributes counted = attributes;
    counted.set("count_include_pad", include);
    const Tensor average = call(Op::kAveragePool, {x}, counted)[0];
    const Tensor dx = call(Op::kAveragePoolGrad, {dy}, with(counted, "input", {5, 6}))[0];
    CHECK(dot(dx, x) == Approx(dot(average, dy)));
  }
}

TEST_CASE("softmax and log_softmax are stable") {
  const Tensor x = f64({2, 2}, {1000, 1000 + std::log(3.0), -1000, -1000});
  const Values p = call(Op::kSoftmax, {x}, {{"axis", int64_t{1}}})[0].reals;
  CHECK(p[0] == Approx(0.25));
  CHECK(p[1] == Approx(0.75));
  CHECK(p[2] == 0.5);
  const Values q = call(Op::kLogSoftmax, {x}, {{"axis", int64_t{1}}})[0].reals;
  CHECK(q[0] == Approx(std::log(0.25)));
  CHECK(q[3] == Approx(-std::log(2.0)));
  const Values columns = call(Op::kSoftmax, {x}, {{"axis", int64_t{0}}})[0].reals;
  CHECK(columns[0] == 1);
  CHECK(columns[2] == 0);
}

TEST_CASE("normalize gives mean and population variance") {
  const Tensor x = f64({1, 4}, {0, 2, 4, 6});
  const std::vector<Tensor> results =
      call(Op::kNormalize, {x}, {{"axes", Shape{1}}, {"epsilon", 1e-5}});
  CHECK(results[0].reals[0] == Approx(-1.34164).epsilon(1e-5));
  CHECK(results[0].reals[3] == Approx(1.34164).epsilon(1e-5));
  CHECK(results[1].reals[0] == 3);
  CHECK(results[2].reals[0] == 5);
}

TEST_CASE("attention by hand: equal scores average, causal queries see the past") {
  const Tensor q = f64({1, 2, 2, 1}, {0, 0, 0, 0});
  const Tensor k = f64({1, 1, 2, 1}, {1, 2});
  const Tensor v = f64({1, 1, 2, 1}, {10, 20});
  const std::vector<Tensor> all = call(Op::kAttention, {q, k, v}, {{"scale", 1.0}});
  CHECK(all[0].reals == Values{15, 15, 15, 15});
  CHECK(all[1].reals[0] == 0);
  CHECK(all[2].reals[0] == 2);
  const std::vector<Tensor> causal =
      call(Op::kAttention, {q, k, v}, {{"scale", 1.0}, {"causal", int64_t{1}}});
  CHECK(causal[0].reals == Values{10, 15, 10, 15});
  CHECK(causal[2].reals == Values{1, 2, 1, 2});
  const Tensor mask = f64({1, 2}, {-INFINITY, 0});
  CHECK(call(Op::kAttention, {q, k, v, mask}, {{"scale", 1.0}})[0].reals == Values{20, 20, 20, 20});
}

TEST_CASE("attention of a query that sees no key: NaN, or zeros where asked for") {
  const Tensor q = f64({1, 1, 2, 1}, {1, 1}), k = f64({1, 1, 2, 1}, {1, 2});
  const Tensor v = f64({1, 1, 2, 1}, {10, 20}), ones = f64({1, 1, 2, 1}, {1, 1});
  const Tensor mask = f64({2, 2}, {-INFINITY, -INFINITY, -INFINITY, 0});
  CHECK(std::isnan(call(Op::kAttention, {q, k, v, mask}, {{"scale", 1.0}})[0].reals[0]));
  const Attributes zeros = {{"scale", 1.0}, {"zero_empty", int64_t{1}}};
  const std::vector<Tensor> y = call(Op::kAttention, {q, k, v, mask}, zeros);
  CHECK(y[0].reals == Values{0, 20});
  const std::vector<Tensor> gradients =
      call(Op::kAttentionGrad, {q, k, v, y[0], y[1], y[2], ones, mask}, zeros);
  CHECK(gradients[0].reals == Values{0, 0});
  CHECK(gradients[2].reals == Values{0, 1});
}

TEST_CASE("the gradient of attention agrees with differences") {
  for (const int64_t causal : {0, 1}) {
    const Attributes attributes = {{"scale", 0.7}, {"causal", causal}};
    const std::vector<Tensor> operands = {sample({2, 4, 3, 5}, 0.1), sample({2, 2, 4, 5}, 0.2),
                                          sample({2, 2, 4, 6}, 0.3), sample({4, 1, 4}, 0.4)};
    const std::vector<Tensor> forward = call(Op::kAttention, operands, attributes);
    const Tensor doutput = sample(forward[0].type.shape, 0.5);
    const std::vector<Tensor> gradients = call(Op::kAttentionGrad,
                                               {operands[0], operands[1], operands[2], forward[0],
                                                forward[1], forward[2], doutput, operands[3]},
                                               attributes);
    const auto loss = [&](const std::vector<Tensor>& at) {
      return dot(call(Op::kAttention, at, attributes)[0], doutput);
    };
    for (size_t i = 0; i < 3; ++i) {
      const Tensor direction = sample(operands[i].type.shape, 1.1);
      CHECK(dot(gradients[i], direction) == Approx(slope(loss, operands, i, direction)));
    }
  }
}
