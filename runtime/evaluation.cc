#include "evaluation.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "communication/groups.h"
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

// What a result's buffer holds of a micro-batch. Only those of that scope differ between them: a
// result may be a constant.
const unsigned char* result_of(Session& session, const std::string& name, int64_t micro_batch) {
  const plan::Buffer& buffer = session.memory().buffer(name);
  return session.fetch(buffer, buffer.scope == "micro_batch" ? micro_batch : 0);
}

double read_scalar(Session& session, const std::string& name, int64_t micro_batch) {
  return read_element(session.memory().buffer(name).dtype, result_of(session, name, micro_batch));
}

// The sums of one loss term, or its share of them from one micro-batch.
struct TermSums {
  double numerator = 0;
  double denominator = 0;
};

TermSums read_term(Session& session, const plan::LossTerm& term, int64_t micro_batch) {
  TermSums sums;
  sums.numerator = read_scalar(session, term.numerator, micro_batch);
  if (!term.denominator.empty()) {
    sums.denominator = read_scalar(session, term.denominator, micro_batch);
  } else {
    sums.denominator = term.denominator_constant == 0 ? 1 : term.denominator_constant;
  }
  return sums;
}

// What a rank tells after a pass: a byte that is 1 if it was asked to stop, then its TermSums, by
// micro-batch and term.
std::string message_of(const std::vector<TermSums>& terms) {
  std::string message(1, stop_requested() ? '\1' : '\0');
  message.append(reinterpret_cast<const char*>(terms.data()), terms.size() * sizeof(TermSums));
  return message;
}

TermSums term_in(const std::string& message, size_t index) {
  TermSums terms;
  std::memcpy(&terms, message.data() + 1 + index * sizeof terms, sizeof terms);
  return terms;
}

bool asks_to_stop(const std::vector<std::string>& messages) {
  return std::any_of(messages.begin(), messages.end(),
                     [](const std::string& message) { return message[0] == '\1'; });
}

// Adds what the ranks told about `count` micro-batches, in their order.
void add_terms(const plan::Plan& plan, const std::vector<std::string>& messages, int64_t count,
               std::vector<TermSums>& sums) {
  std::vector<size_t> used(messages.size());
  for (int64_t i = 0; i < count; ++i) {
    for (size_t term = 0; term < sums.size(); ++term) {
      const Coordinates source = {plan.loss_terms[term].position, i / plan.micro_batches, 0};
      const size_t rank = static_cast<size_t>(rank_at(plan, source));
      const TermSums more = term_in(messages[rank], used[rank]++);
      sums[term].numerator += more.numerator;
      sums[term].denominator += more.denominator;
    }
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

int64_t count_evaluated(const plan::Plan& plan, int64_t samples) {
  if (!plan.row_weights.empty() || plan.micro_batch_rows == 0) return samples;
  return samples - samples % plan.micro_batch_rows;
}

Evaluator::Evaluator(Job& job, Session& session, const DataSet& data)
    : job_(job),
      session_(session),
      data_(data),
      feeder_(session.plan(), data, session.memory()),
      replicas_(axis_size(session.plan(), "dp")) {}

int64_t Evaluator::micro_batches_per_pass() const {
  return session_.plan().micro_batches * replicas_;
}

int64_t Evaluator::own(int64_t first) const {
  return first + session_.coordinates().dp * session_.plan().micro_batches;
}

void Evaluator::run_pass(int64_t first, const StepControl& control) {
  const plan::Plan& plan = session_.plan();
  session_.await_inputs();
  feeder_.load_constants();
  const int64_t rows = plan.micro_batch_rows;
  for (int64_t i = 0; data_.samples() > 0 && i < rows * plan.micro_batches; ++i) {
    const int64_t row = own(first) * rows + i;
    const int64_t last = data_.samples() - 1;
    feeder_.load_row(i / rows, i % rows, std::min(row, last), row <= last ? 1 : 0);
  }
  session_.evaluate(control);
}

std::string Evaluator::terms_of_pass(int64_t first, int64_t end) const {
  const plan::Plan& plan = session_.plan();
  std::vector<TermSums> terms;
  for (int64_t m = 0; m < plan.micro_batches && own(first) + m < end; ++m) {
    for (const plan::LossTerm& term : plan.loss_terms) {
      if (term.position != session_.coordinates().pp) continue;
      terms.push_back(read_term(session_, term, m));
    }
  }
  return message_of(terms);
}

std::optional<double> Evaluator::loss(const StepControl& control) {
  const plan::Plan& plan = session_.plan();
  const int64_t pass = micro_batches_per_pass();
  const int64_t rows = plan.micro_batch_rows;
  const int64_t end =
      data_.samples() == 0 ? pass : (count_evaluated(plan, data_.samples()) + rows - 1) / rows;
  std::vector<TermSums> sums(plan.loss_terms.size());
  for (int64_t first = 0; first < end; first += pass) {
    run_pass(first, control);
    const std::vector<std::string> messages = job_.all_gather(terms_of_pass(first, end));
    if (asks_to_stop(messages)) return std::nullopt;
    if (job_.rank() == 0) add_terms(plan, messages, std::min(pass, end - first), sums);
  }
  double loss = 0;
  for (size_t term = 0; job_.rank() == 0 && term < sums.size(); ++term) {
    loss += plan.loss_terms[term].coefficient * sums[term].numerator / sums[term].denominator;
  }
  return loss;
}

void Evaluator::write_pass(int64_t first, const plan::Result& result, JointFile& file) const {
  const plan::Plan& plan = session_.plan();
  const Coordinates& coordinates = session_.coordinates();
  if (coordinates.pp != result.position || coordinates.tp != 0) return;
  const int64_t rows = plan.micro_batch_rows;
  const int64_t row_bytes = element_count(result.shape) * size_of_element(result.dtype) / rows;
  for (int64_t m = 0; m < plan.micro_batches; ++m) {
    const int64_t row = (own(first) + m) * rows;
    const int64_t left = std::min(rows, data_.samples() - row);
    if (left <= 0) break;
    const unsigned char* data = result_of(session_, result.buffer, m);
    file.write(data, left * row_bytes, row * row_bytes);
  }
}

void Evaluator::predict(const StepControl& control, const std::vector<NamedFile>& outputs) {
  const plan::Plan& plan = session_.plan();
  std::vector<const plan::Result*> results;
  std::vector<std::unique_ptr<JointFile>> files;
  for (const NamedFile& output : outputs) {
    results.push_back(find_output(plan, output.names[0]));
    files.push_back(std::make_unique<JointFile>(job_, output.path));
    std::vector<int64_t> shape = results.back()->shape;
    shape[0] = data_.samples() * (shape[0] / plan.micro_batch_rows);
    const std::string& dtype = results.back()->dtype;
    files.back()->begin(npy_header(dtype, shape), element_count(shape) * size_of_element(dtype));
  }
  const int64_t pass = micro_batches_per_pass() * plan.micro_batch_rows;
  for (int64_t row = 0; row < data_.samples(); row += pass) {
    run_pass(row / plan.micro_batch_rows, control);
    for (size_t i = 0; i < files.size(); ++i) {
      write_pass(row / plan.micro_batch_rows, *results[i], *files[i]);
    }
  }
  for (const auto& file : files) file->commit();
}

}  // namespace sgtc::runtime
