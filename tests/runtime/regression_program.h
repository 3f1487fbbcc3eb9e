// A whole program by hand: linear regression y = x·w, squared error, momentum SGD.
//
// Micro-batches of kRows rows, kMicroBatches of them per step. Forward and backward of a
// micro-batch are one task of two kernels, joined by a slot buffer; the update is another.
// Gradients get a tiny seed- and step-dependent noise, so that a wrong seed or step after a resume
// shows.
#pragma once

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/format.h"
#include "runtime/program.h"

namespace sgtc::runtime {

inline constexpr int64_t kWidth = 4;
inline constexpr int64_t kRows = 2;
inline constexpr int64_t kMicroBatches = 3;

// Arguments: x, w, y, residual, status. An x of exactly 1e30 plays an index out of range.
inline void regression_forward(void* const* arguments, int64_t begin, int64_t end, int64_t) {
  const float* x = static_cast<const float*>(arguments[0]);
  const float* w = static_cast<const float*>(arguments[1]);
  const float* y = static_cast<const float*>(arguments[2]);
  float* residual = static_cast<float*>(arguments[3]);
  int64_t* status = static_cast<int64_t*>(arguments[4]);
  for (int64_t row = begin; row < end; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < kWidth; ++i) sum += x[row * kWidth + i] * w[i];
    residual[row] = sum - y[row];
    if (x[row * kWidth] == 1e30F) status[0] = 1, status[1] = 7, status[2] = 5;
  }
}

// Arguments: x, residual, gradient, loss.
inline void regression_backward(void* const* arguments, int64_t begin, int64_t end, int64_t) {
  const float* x = static_cast<const float*>(arguments[0]);
  const float* residual = static_cast<const float*>(arguments[1]);
  float* gradient = static_cast<float*>(arguments[2]);
  float* loss = static_cast<float*>(arguments[3]);
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t row = 0; row < kRows; ++row) {
      gradient[i] += 2 * residual[row] * x[row * kWidth + i] / (kRows * kMicroBatches);
    }
    if (i > 0) continue;
    for (int64_t row = 0; row < kRows; ++row) {
      *loss += residual[row] * residual[row] / (kRows * kMicroBatches);
    }
  }
}

// Arguments: w, momentum, gradient, control, norm, finite, statistic.
inline void regression_update(void* const* arguments, int64_t, int64_t, int64_t) {
  float* w = static_cast<float*>(arguments[0]);
  float* momentum = static_cast<float*>(arguments[1]);
  const float* gradient = static_cast<const float*>(arguments[2]);
  const unsigned char* control = static_cast<const unsigned char*>(arguments[3]);
  float rate;
  int64_t seed;
  int64_t step;
  std::memcpy(&rate, control, 4);
  std::memcpy(&seed, control + 8, 8);
  std::memcpy(&step, control + 16, 8);
  float square = 0;
  for (int64_t i = 0; i < kWidth; ++i) square += gradient[i] * gradient[i];
  *static_cast<float*>(arguments[4]) = std::sqrt(square);
  const bool finite = std::isfinite(square);
  *static_cast<unsigned char*>(arguments[5]) = finite;
  if (!finite) return;
  for (int64_t i = 0; i < kWidth; ++i) {
    const float noise = 1e-3F * static_cast<float>((seed * 7 + step * 3 + i) % 5);
    momentum[i] = 0.9F * momentum[i] + gradient[i] + noise;
    w[i] -= rate * momentum[i];
  }
  *static_cast<float*>(arguments[6]) += 1;
}

// Arguments: x, w, y, prediction, numerator.
inline void regression_evaluate(void* const* arguments, int64_t, int64_t, int64_t) {
  const float* x = static_cast<const float*>(arguments[0]);
  const float* w = static_cast<const float*>(arguments[1]);
  const float* y = static_cast<const float*>(arguments[2]);
  float* prediction = static_cast<float*>(arguments[3]);
  float* numerator = static_cast<float*>(arguments[4]);
  *numerator = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    prediction[row] = 0;
    for (int64_t i = 0; i < kWidth; ++i) prediction[row] += x[row * kWidth + i] * w[i];
    const float residual = prediction[row] - y[row];
    *numerator += residual * residual;
  }
}

inline const SgtcKernel kRegressionKernels[] = {{"forward", regression_forward},
                                                {"backward", regression_backward},
                                                {"update", regression_update},
                                                {"evaluate", regression_evaluate}};

/// Adds a buffer of `count` instances behind the ones that the position has.
inline void add_buffer(plan::Position& position, const std::string& name, const std::string& scope,
                       std::vector<int64_t> shape, int64_t bytes, int64_t count = 1) {
  const int64_t stride = (bytes + 63) / 64 * 64;
  position.buffers.push_back(
      {name, scope, "f32", std::move(shape), bytes, position.arena_bytes, stride, count});
  position.arena_bytes += stride * count;
}

inline plan::Task compute_task(const std::string& name, std::vector<plan::Call> calls) {
  plan::Task task;
  task.name = name;
  task.kind = "compute";
  task.calls = std::move(calls);
  return task;
}

inline plan::Kernel kernel_of(const std::string& symbol, int64_t blocks) {
  plan::Kernel kernel;
  kernel.symbol = symbol;
  kernel.blocks = blocks;
  return kernel;
}

inline plan::Entry entry_of(const std::string& task, int64_t micro_batch = 0, int64_t stream = 0,
                            std::vector<int64_t> waits = {}) {
  plan::Entry entry;
  entry.task = task;
  entry.micro_batch = micro_batch;
  entry.stream = stream;
  entry.waits = std::move(waits);
  return entry;
}

inline plan::Position regression_position() {
  plan::Position position;
  position.stages = {0};
  add_buffer(position, "w", "persistent", {kWidth}, kWidth * 4);
  add_buffer(position, "w.momentum", "persistent", {kWidth}, kWidth * 4);
  add_buffer(position, "updates", "persistent", {}, 4);
  add_buffer(position, "control", "persistent", {24}, 24);
  add_buffer(position, "status", "persistent", {8}, plan::kStatusBytes);
  add_buffer(position, "gradient", "step", {kWidth}, kWidth * 4);
  add_buffer(position, "loss", "step", {}, 4);
  add_buffer(position, "norm", "step", {}, 4);
  add_buffer(position, "finite", "step", {}, 1);
  add_buffer(position, "x", "micro_batch", {kRows, kWidth}, kRows * kWidth * 4, kMicroBatches);
  add_buffer(position, "y", "micro_batch", {kRows}, kRows * 4, kMicroBatches);
  add_buffer(position, "prediction", "micro_batch", {kRows}, kRows * 4, kMicroBatches);
  add_buffer(position, "numerator", "micro_batch", {}, 4, kMicroBatches);
  add_buffer(position, "residual", "slot", {kRows}, kRows * 4);
  const auto call = [&](const char* kernel, std::vector<const char*> names) {
    plan::Call call;
    call.kernel = kernel;
    for (const char* name : names) call.arguments.push_back({name, {}, 0});
    return call;
  };
  position.tasks = {
      compute_task("forward_backward", {call("forward", {"x", "w", "y", "residual", "status"}),
                                        call("backward", {"x", "residual", "gradient", "loss"})}),
      compute_task("update", {call("update", {"w", "w.momentum", "gradient", "control", "norm",
                                              "finite", "updates"})}),
      compute_task("evaluate", {call("evaluate", {"x", "w", "y", "prediction", "numerator"})})};
  for (int64_t m = 0; m < kMicroBatches; ++m) {
    position.schedules["train"].push_back(entry_of("forward_backward", m));
    position.schedules["evaluate"].push_back(entry_of("evaluate", m));
  }
  position.schedules["train"].push_back(entry_of("update"));
  return position;
}

inline plan::Plan regression_plan() {
  plan::Plan plan;
  plan.model = "regression";
  plan.cpu = "x86-64";
  plan.cpu_features = {"sse2"};
  plan.mesh = {{"pp", 1}, {"dp", 1}, {"tp", 1}};
  plan.micro_batches = kMicroBatches;
  plan.micro_batch_rows = kRows;
  plan.kernels = {kernel_of("forward", kRows), kernel_of("backward", kWidth),
                  kernel_of("update", 1), kernel_of("evaluate", 1)};
  plan.positions = {regression_position()};
  plan.feeds = {{"x", "f32", {kRows, kWidth}, 0, "dot"}, {"y", "f32", {kRows}, 0, "difference"}};
  plan.results = {{"loss", "loss", "f32", {}, 0},
                  {"grad_norm", "norm", "f32", {}, 0},
                  {"finite", "finite", "bool", {}, 0}};
  plan.evaluate_results = {{"prediction", "prediction", "f32", {kRows}, 0}};
  plan.loss_terms = {{1, "numerator", "", kRows}};
  plan.states = {{"w", "parameter", "f32", {kWidth}, "w", 0, "normal", 0, 0, 0.5, 0},
                 {"w.momentum", "moment", "f32", {kWidth}, "w.momentum", 0, "zero", 0, 0, 0, 0},
                 {"updates", "statistic", "f32", {}, "updates", 0, "fill", 0, 10, 0, 0},
                 {"gradient", "accumulator", "f32", {kWidth}, "gradient", 0, "zero", 0, 0, 0, 0},
                 {"loss.total", "accumulator", "f32", {}, "loss", 0, "zero", 0, 0, 0, 0}};
  plan.control = {{"learning_rate", "f32", 0}, {"seed", "i64", 8}, {"step", "i64", 16}};
  plan.checked_nodes = {"dot"};
  plan.model_fingerprint = "model-a";
  return plan;
}

/// The program around plans; `text` keeps their JSON alive.
inline Program regression_program(const std::vector<plan::Plan>& plans, std::string& text) {
  text = nlohmann::json(plans).dump();
  Program program;
  program.plans = text;
  program.kernels = kRegressionKernels;
  program.kernel_count = std::size(kRegressionKernels);
  program.fingerprint = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  program.version = "test";
  return program;
}

}  // namespace sgtc::runtime
