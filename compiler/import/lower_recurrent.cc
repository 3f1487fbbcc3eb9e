// RNN, GRU and LSTM, unrolled over time as loops are (control_flow.cc).
//
// The products with the input do not depend on the state, so they are one matrix product for all
// steps, with the batch as the outer dimension of its rows, so that micro-batches can be cut; what
// remains per step is a product with the hidden state and elementwise nodes. A sequence
// that is over keeps its state and gives zeros, so backward sequences of unequal lengths start at
// their own ends.
#include <algorithm>
#include <functional>

#include "import/activations.h"
#include "import/lowering.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

enum Input { kX, kW, kR, kBias, kLengths, kHidden, kCell, kPeephole };

using Activation = std::function<ValueId(ValueId)>;

// Hands out the values of activation_alpha and activation_beta in the order of the activations.
class Activations {
 public:
  Activations(Lowering& n, const std::vector<std::string>& otherwise, int64_t directions)
      : n_(n), alphas_(n.reals("activation_alpha")), betas_(n.reals("activation_beta")) {
    std::vector<std::string> all;
    for (int64_t d = 0; d < directions; ++d) {
      all.insert(all.end(), otherwise.begin(), otherwise.end());
    }
    names_ = n.texts("activations", all);
    if (names_.size() != all.size()) {
      throw Error("attribute \"activations\": expected " + std::to_string(all.size()) + ", found " +
                  std::to_string(names_.size()));
    }
  }

  Activation next() {
    const std::string& name = names_[position_++];
    if (name == "Sigmoid") return simple(Op::kSigmoid);
    if (name == "Tanh") return simple(Op::kTanh);
    if (name == "Softplus") return simple(Op::kSoftplus);
    if (name == "Relu") return [&n = n_](ValueId x) { return emit_relu(n, x); };
    if (name == "Softsign") return [&n = n_](ValueId x) { return emit_softsign(n, x); };
    if (name == "Elu") return with_alpha(emit_elu, 1);
    if (name == "LeakyRelu") return with_alpha(emit_leaky_relu, 0.01f);
    if (name == "ThresholdedRelu") return with_alpha(emit_thresholded_relu, 1);
    if (name == "HardSigmoid") return with_both(emit_hard_sigmoid, 0.2f, 0.5);
    if (name == "Affine") {
      return with_both([](Emitter& e, ValueId x, double a,
                          double b) { return e.add_scalar(e.mul_scalar(x, a), b); },
                       1, 0);
    }
    if (name == "ScaledTanh") {
      return with_both(
          [](Emitter& e, ValueId x, double a, double b) {
            return e.mul_scalar(e.add(Op::kTanh, {e.mul_scalar(x, b)}), a);
          },
          1, 1);
    }
    throw Error("attribute \"activations\": \"" + name +
                "\" is none of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid, "
                "Softplus, Softsign, Tanh, ThresholdedRelu");
  }

 private:
  using OneParameter = ValueId (*)(Emitter&, ValueId, double);
  using TwoParameters = ValueId (*)(Emitter&, ValueId, double, double);

  Activation simple(Op op) {
    return [&n = n_, op](ValueId x) { return n.add(op, {x}); };
  }

  Activation with_alpha(OneParameter emit, double otherwise) {
    const double alpha = take(alphas_, next_alpha_, otherwise);
    return [&n = n_, emit, alpha](ValueId x) { return emit(n, x, alpha); };
  }

  Activation with_both(TwoParameters emit, double alpha_otherwise, double beta_otherwise) {
    const double alpha = take(alphas_, next_alpha_, alpha_otherwise);
    const double beta = take(betas_, next_beta_, beta_otherwise);
    return [&n = n_, emit, alpha, beta](ValueId x) { return emit(n, x, alpha, beta); };
  }

  static double take(const std::vector<double>& values, size_t& next, double otherwise) {
    return next < values.size() ? values[next++] : otherwise;
  }

  Lowering& n_;
  std::vector<std::string> names_;
  std::vector<double> alphas_, betas_;
  size_t position_ = 0, next_alpha_ = 0, next_beta_ = 0;
};

// What a step hands to the next one; the cell is that of an LSTM.
struct State {
  ValueId hidden = kNone;
  ValueId cell = kNone;
};

// The weights of one direction: [gates·H, ·] matrices, biases [gates·H] or kNone.
struct Weights {
  ValueId input, recurrent;
  ValueId input_bias = kNone, recurrent_bias = kNone;
  ValueId peephole = kNone;  // [3·H], of an LSTM
  std::vector<Activation> activations;
};

// The parts of the recurrent operators that do not depend on the kind of cell.
class Recurrence {
 public:
  Recurrence(Lowering& n, int64_t gates, const std::vector<std::string>& activations)
      : n_(n), gates_(gates), direction_(n.text("direction", "forward")) {
    if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional") {
      throw Error("attribute \"direction\": expected forward, reverse or bidirectional, found \"" +
                  direction_ + "\"");
    }
    directions_ = direction_ == "bidirectional" ? 2 : 1;
    batch_first_ = n.integer("layout", 0) != 0;
    clip_ = n.real("clip", 0);
    x_ = n.input(kX);
    if (n.rank(x_) != 3) {
      throw Error("X: expected [sequence, batch, input], found " + to_string(n.shape(x_)));
    }
    if (!batch_first_) x_ = n.transpose(x_, {1, 0, 2});
    batch_ = n.shape(x_)[0];
    steps_ = n.shape(x_)[1];
    width_ = n.shape(x_)[2];
    if (n.input_rank(kR) != 3) {
      throw Error("R: expected rank 3, found " + to_string(n.input_shape(kR)));
    }
    hidden_ = n.input_shape(kR)[2];
    check(kW, {directions_, gates_ * hidden_, width_});
    check(kR, {directions_, gates_ * hidden_, hidden_});
    check(kBias, {directions_, 2 * gates_ * hidden_});
    check(kLengths, {batch_});
    check(kHidden, state_shape());
    check(kCell, state_shape());
    check(kPeephole, {directions_, 3 * hidden_});
    if (n.integer("hidden_size", hidden_) != hidden_) {
      throw Error("attribute \"hidden_size\": expected " + std::to_string(hidden_) +
                  ", the last dimension of R, found " +
                  std::to_string(n.integer("hidden_size", hidden_)));
    }
    Activations functions(n, activations, directions_);
    for (int64_t d = 0; d < directions_; ++d) {
      weights_.push_back(weights_of(d));
      for (size_t k = 0; k < activations.size(); ++k) {
        weights_.back().activations.push_back(functions.next());
      }
    }
  }

  Recurrence(const Recurrence&) = delete;
  Recurrence& operator=(const Recurrence&) = delete;
  virtual ~Recurrence() = default;

  /// Y, Y_h and, with a cell, Y_c.
  ValueIds lower(bool has_cell) {
    std::vector<ValueIds> outputs(static_cast<size_t>(steps_));
    ValueIds hidden, cells;
    for (int64_t d = 0; d < directions_; ++d) {
      const State last = run(d, has_cell, outputs);
      hidden.push_back(n_.unsqueeze(last.hidden, {direction_axis()}));
      if (has_cell) cells.push_back(n_.unsqueeze(last.cell, {direction_axis()}));
    }
    ValueIds results{sequence(outputs), n_.concat(hidden, direction_axis())};
    if (has_cell) results.push_back(n_.concat(cells, direction_axis()));
    return results;
  }

 protected:
  /// The state after one step; `x` [B, gates·H] is the product with the input and the bias of it.
  virtual State step(const Weights& w, ValueId x, const State& before) = 0;

  /// Part `index` of the last dimension of a [.., gates·H] value.
  ValueId gate(ValueId x, int64_t index, int64_t count = 1) {
    return n_.slice(x, n_.rank(x) - 1, index * hidden_, count * hidden_);
  }

  /// Rows of gates `first` … of a [gates·H, H] matrix or a [gates·H] vector.
  ValueId rows(ValueId w, int64_t first, int64_t count) {
    return n_.slice(w, 0, first * hidden_, count * hidden_);
  }

  ValueId with_bias(ValueId x, ValueId bias) { return bias == kNone ? x : n_.add(x, bias); }

  ValueId activate(const Activation& activation, ValueId x) {
    if (clip_ > 0) {
      x = n_.add(Op::kMax, {x, n_.scalar(n_.dtype(x), -clip_)});
      x = n_.add(Op::kMin, {x, n_.scalar(n_.dtype(x), clip_)});
    }
    return activation(x);
  }

  /// a·x + (1 - a)·y.
  ValueId blend(ValueId a, ValueId x, ValueId y) {
    const ValueId rest = n_.sub(n_.scalar(n_.dtype(a), 1), a);
    return n_.add(n_.mul(a, x), n_.mul(rest, y));
  }

  Lowering& n_;

 private:
  int64_t direction_axis() const { return batch_first_ ? 1 : 0; }

  Shape state_shape() const {
    return batch_first_ ? Shape{batch_, directions_, hidden_} : Shape{directions_, batch_, hidden_};
  }

  void check(int index, const Shape& expected) const {
    if (!n_.has_input(index) || n_.input_shape(index) == expected) return;
    throw Error("input " + std::to_string(index) + ": expected shape " + to_string(expected) +
                ", found " + to_string(n_.input_shape(index)));
  }

  // Entry `d` of the dimension of directions.
  ValueId of_direction(ValueId x, int64_t d, int64_t axis = 0) {
    return n_.squeeze(n_.slice(x, axis, d, 1), {axis});
  }

  Weights weights_of(int64_t d) {
    Weights w;
    w.input = of_direction(n_.input(kW), d);
    w.recurrent = of_direction(n_.input(kR), d);
    if (n_.has_input(kBias)) {
      const ValueId bias = of_direction(n_.input(kBias), d);
      w.input_bias = rows(bias, 0, gates_);
      w.recurrent_bias = rows(bias, gates_, gates_);
    }
    if (n_.has_input(kPeephole)) w.peephole = of_direction(n_.input(kPeephole), d);
    return w;
  }

  ValueId initial(int index, int64_t d) {
    if (n_.has_input(index)) return of_direction(n_.input(index), d, direction_axis());
    return n_.broadcast(n_.scalar(n_.dtype(x_), 0), {batch_, hidden_});
  }

  // Runs one direction and appends what it gives to the outputs of each step.
  State run(int64_t d, bool has_cell, std::vector<ValueIds>& outputs) {
    const Weights& w = weights_[static_cast<size_t>(d)];
    const ValueId flat = n_.reshape(x_, {batch_ * steps_, width_});
    const ValueId products =
        n_.reshape(with_bias(n_.matmul(flat, w.input, false, true), w.input_bias),
                   {batch_, steps_, gates_ * hidden_});
    State state{initial(kHidden, d), has_cell ? initial(kCell, d) : kNone};
    const bool backward = direction_ == "reverse" || d == 1;
    for (int64_t i = 0; i < steps_; ++i) {
      const int64_t t = backward ? steps_ - 1 - i : i;
      const ValueId x = n_.squeeze(n_.slice(products, 1, t, 1), {1});
      State next = step(w, x, state);
      ValueId shown = next.hidden;
      if (n_.has_input(kLengths)) shown = end_sequences(t, state, next);
      outputs[static_cast<size_t>(t)].push_back(shown);
      state = next;
    }
    return state;
  }

  // Keeps the state of sequences that have no step t; returns the hidden state with zeros there.
  ValueId end_sequences(int64_t t, const State& before, State& after) {
    const ValueId lengths = n_.reshape(n_.input(kLengths), {batch_, 1});
    const ValueId alive =
        n_.add(Op::kGreater, {lengths, n_.scalar(n_.dtype(lengths), static_cast<double>(t))});
    const ValueId shown = n_.where(alive, after.hidden, n_.scalar(n_.dtype(after.hidden), 0));
    after.hidden = n_.where(alive, after.hidden, before.hidden);
    if (after.cell != kNone) after.cell = n_.where(alive, after.cell, before.cell);
    return shown;
  }

  // [T, directions, B, H], or [B, T, directions, H] with the batch first.
  ValueId sequence(const std::vector<ValueIds>& outputs) {
    ValueIds steps;
    for (const ValueIds& directions : outputs) {
      ValueIds parts;
      for (ValueId part : directions) parts.push_back(n_.unsqueeze(part, {1, 2}));
      steps.push_back(n_.concat(parts, 2));
    }
    const ValueId zero = n_.scalar(n_.dtype(x_), 0);
    const ValueId y =
        steps.empty() ? n_.broadcast(zero, {batch_, 0, directions_, hidden_}) : n_.concat(steps, 1);
    return batch_first_ ? y : n_.transpose(y, {1, 2, 0, 3});
  }

  int64_t gates_;
  std::string direction_;
  int64_t directions_ = 1, steps_ = 0, batch_ = 0, width_ = 0, hidden_ = 0;
  bool batch_first_ = false;
  double clip_ = 0;
  ValueId x_ = kNone;  // [B, T, input]
  std::vector<Weights> weights_;
};

class RnnRecurrence : public Recurrence {
 public:
  explicit RnnRecurrence(Lowering& n) : Recurrence(n, 1, {"Tanh"}) {}

 protected:
  State step(const Weights& w, ValueId x, const State& before) override {
    const ValueId h = n_.matmul(before.hidden, w.recurrent, false, true);
    return {activate(w.activations[0], n_.add(x, with_bias(h, w.recurrent_bias)))};
  }
};

// Gates in the order update z, reset r, candidate h.
class GruRecurrence : public Recurrence {
 public:
  explicit GruRecurrence(Lowering& n)
      : Recurrence(n, 3, {"Sigmoid", "Tanh"}),
        reset_after_product_(n.integer("linear_before_reset", 0) != 0) {}

 protected:
  State step(const Weights& w, ValueId x, const State& before) override {
    const ValueId gates = n_.add(gate(x, 0, 2), recurrent(w, before.hidden, 0, 2));
    const ValueId opened = activate(w.activations[0], gates);
    const ValueId update = gate(opened, 0), reset = gate(opened, 1);
    const ValueId past = reset_after_product_ ? n_.mul(reset, recurrent(w, before.hidden, 2, 1))
                                              : recurrent(w, n_.mul(reset, before.hidden), 2, 1);
    const ValueId candidate = activate(w.activations[1], n_.add(gate(x, 2), past));
    return {blend(update, before.hidden, candidate)};
  }

 private:
  ValueId recurrent(const Weights& w, ValueId h, int64_t first, int64_t count) {
    const ValueId product = n_.matmul(h, rows(w.recurrent, first, count), false, true);
    const ValueId bias = w.recurrent_bias == kNone ? kNone : rows(w.recurrent_bias, first, count);
    return with_bias(product, bias);
  }

  bool reset_after_product_;
};

// Gates in the order input i, output o, forget f, candidate c; peepholes in the order i, o, f.
class LstmRecurrence : public Recurrence {
 public:
  explicit LstmRecurrence(Lowering& n)
      : Recurrence(n, 4, {"Sigmoid", "Tanh", "Tanh"}),
        coupled_(n.integer("input_forget", 0) != 0) {}

 protected:
  State step(const Weights& w, ValueId x, const State& before) override {
    const ValueId h = n_.matmul(before.hidden, w.recurrent, false, true);
    const ValueId gates = n_.add(x, with_bias(h, w.recurrent_bias));
    const ValueId input = activate(w.activations[0], peek(w, gates, 0, before.cell));
    const ValueId candidate = activate(w.activations[1], gate(gates, 3));
    ValueId cell = kNone;
    if (coupled_) {
      cell = blend(input, candidate, before.cell);
    } else {
      const ValueId forget = activate(w.activations[0], peek(w, gates, 2, before.cell));
      cell = n_.add(n_.mul(forget, before.cell), n_.mul(input, candidate));
    }
    const ValueId output = activate(w.activations[0], peek(w, gates, 1, cell));
    return {n_.mul(output, activate(w.activations[2], cell)), cell};
  }

 private:
  ValueId peek(const Weights& w, ValueId gates, int64_t index, ValueId cell) {
    const ValueId x = gate(gates, index);
    return w.peephole == kNone ? x : n_.add(x, n_.mul(rows(w.peephole, index, 1), cell));
  }

  bool coupled_;
};

ValueIds lower_rnn(Lowering& n) { return RnnRecurrence(n).lower(false); }
ValueIds lower_gru(Lowering& n) { return GruRecurrence(n).lower(false); }
ValueIds lower_lstm(Lowering& n) { return LstmRecurrence(n).lower(true); }

const std::vector<Rule> kRules = {
    {"", "RNN", {7, 14, 22}, lower_rnn},
    {"", "GRU", {7, 14, 22}, lower_gru},
    {"", "LSTM", {7, 14, 22}, lower_lstm},
};

}  // namespace

std::span<const Rule> recurrent_rules() { return kRules; }

}  // namespace sgtc
