#include "evaluation.h"

#include <algorithm>
#include <memory>

#include "durable_file.h"
#include "element_type.h"
#include "failure.h"
#include "npy.h"
#include "signals.h"

namespace sgtc::runtime {
namespace {

const plan::Result* find_output(const plan::Plan& plan, const std::string& name) {
  for (const plan::Result& result : plan.evaluate_results) {
    if (result.name == name) return &result;
  }
  return nullptr;
}

// One output that is being written.
struct OutputFile {
  const plan::Result* result = nullptr;
  std::string path;
  DurableFile file;

  std::string temporary() const { return path + ".tmp"; }

  MaybeFailure begin(int64_t samples, int64_t micro_batch_rows) {
    std::vector<int64_t> shape = result->shape;
    shape[0] = samples * (shape[0] / micro_batch_rows);
    if (MaybeFailure failure = file.create(temporary())) return failure;
    const std::string header = npy_header(result->dtype, shape);
    return file.write(header.data(), static_cast<int64_t>(header.size()));
  }

  // Appends the first `rows` rows of one micro-batch.
  MaybeFailure append(const PlanMemory& memory, int64_t micro_batch, int64_t rows,
                      int64_t micro_batch_rows) {
    const int64_t bytes = element_count(result->shape) * size_of_element(result->dtype);
    const plan::Buffer& buffer = memory.buffer(result->buffer);
    return file.write(memory.address(buffer, micro_batch), bytes / micro_batch_rows * rows);
  }

  MaybeFailure finish() {
    if (MaybeFailure failure = file.finish()) return failure;
    return rename_durably(temporary(), path);
  }
};

// The running sums of one loss term.
struct TermSums {
  double numerator = 0;
  double denominator = 0;
};

double read_scalar(const PlanMemory& memory, const std::string& name, int64_t micro_batch) {
  const plan::Buffer& buffer = memory.buffer(name);
  return read_element(buffer.dtype, memory.address(buffer, micro_batch));
}

void add_micro_batch(const PlanMemory& memory, const plan::LossTerm& term, int64_t micro_batch,
                     TermSums& sums) {
  sums.numerator += read_scalar(memory, term.numerator, micro_batch);
  if (!term.denominator.empty()) {
    sums.denominator += read_scalar(memory, term.denominator, micro_batch);
  } else {
    sums.denominator += term.denominator_constant == 0 ? 1 : term.denominator_constant;
  }
}

}  // namespace

void check_predictions(const plan::Plan& plan, const std::vector<NamedFile>& outputs) {
  std::string known;
  for (const plan::Result& result : plan.evaluate_results) {
    known += (known.empty() ? "" : ", ") + result.name;
  }
  for (const NamedFile& output : outputs) {
    const plan::Result* result = find_output(plan, output.names[0]);
    if (!result) {
      die("--predict " + output.names[0], "the program has no such output",
          "its outputs are: " + (known.empty() ? "none" : known));
    }
    const int64_t rows = plan.micro_batch_rows;
    if (rows == 0 || result->shape.empty() || result->shape[0] % rows != 0) {
      die("--predict " + output.names[0],
          "has shape " + shape_text(result->shape) + ", which has no row per sample",
          "choose an output whose first dimension is the batch");
    }
  }
}

Evaluator::Evaluator(Session& session, const DataSet& data)
    : session_(session), data_(data), feeder_(data, session.memory()) {}

int64_t Evaluator::dropped_rows() const {
  return data_.samples() == 0 ? 0 : data_.samples() % session_.plan().micro_batch_rows;
}

int64_t Evaluator::rows_per_pass() const {
  return session_.plan().micro_batch_rows * session_.plan().micro_batches;
}

void Evaluator::load(int64_t first_row) {
  feeder_.load_constants();
  if (data_.samples() == 0) return;
  const int64_t rows = session_.plan().micro_batch_rows;
  for (int64_t i = 0; i < rows_per_pass(); ++i) {
    feeder_.load_row(i / rows, i % rows, std::min(first_row + i, data_.samples() - 1));
  }
}

std::optional<double> Evaluator::loss(const StepControl& control) {
  const plan::Plan& plan = session_.plan();
  const int64_t micro_batches =
      data_.samples() == 0 ? plan.micro_batches : data_.samples() / plan.micro_batch_rows;
  std::vector<TermSums> sums(plan.loss_terms.size());
  for (int64_t first = 0; first < micro_batches; first += plan.micro_batches) {
    if (stop_requested()) return std::nullopt;
    load(first * plan.micro_batch_rows);
    session_.evaluate(control);
    const int64_t count = std::min(plan.micro_batches, micro_batches - first);
    for (size_t term = 0; term < sums.size(); ++term) {
      for (int64_t m = 0; m < count; ++m) {
        add_micro_batch(session_.memory(), plan.loss_terms[term], m, sums[term]);
      }
    }
  }
  double loss = 0;
  for (size_t term = 0; term < sums.size(); ++term) {
    loss += plan.loss_terms[term].coefficient * sums[term].numerator / sums[term].denominator;
  }
  return loss;
}

void Evaluator::predict(const StepControl& control, const std::vector<NamedFile>& outputs) {
  const plan::Plan& plan = session_.plan();
  const int64_t rows = plan.micro_batch_rows;
  std::vector<std::unique_ptr<OutputFile>> files;
  for (const NamedFile& output : outputs) {
    files.push_back(std::make_unique<OutputFile>());
    files.back()->result = find_output(plan, output.names[0]);
    files.back()->path = output.path;
    require(files.back()->begin(data_.samples(), rows));
  }
  for (int64_t first = 0; first < data_.samples(); first += rows_per_pass()) {
    load(first);
    session_.evaluate(control);
    for (int64_t m = 0; m < plan.micro_batches; ++m) {
      const int64_t left = std::min(rows, data_.samples() - first - m * rows);
      if (left <= 0) break;
      for (const auto& file : files) require(file->append(session_.memory(), m, left, rows));
    }
  }
  for (const auto& file : files) require(file->finish());
}

}  // namespace sgtc::runtime
