#include "models/checks.h"

#include "support/diagnostics.h"

namespace sgtc::models {

void check_positive(const std::string& option, int64_t value) {
  if (value >= 1) return;
  throw Error(option + ": expected at least 1, found " + std::to_string(value));
}

void check_multiple(const std::string& option, int64_t value, int64_t divisor,
                    const std::string& parts) {
  if (value % divisor == 0) return;
  throw Error(option + ": expected a multiple of the " + std::to_string(divisor) + " " + parts +
              ", found " + std::to_string(value));
}

void check_batch(const Dim& batch) {
  if (batch.name.empty()) check_positive("--batch", batch.size);
}

void check_context(int64_t context, int64_t seq) {
  if (context >= seq) return;
  throw Error("--context: expected at least the " + std::to_string(seq) +
              " tokens of --seq, found " + std::to_string(context));
}

void check_dropout(float rate) {
  if (rate >= 0 && rate < 1) return;
  throw Error("--dropout: expected a number in [0, 1), found " + std::to_string(rate));
}

void check_opset(int64_t opset) {
  if (opset >= kOldestOpset && opset <= kNewestOpset) return;
  throw Error("--opset: expected " + std::to_string(kOldestOpset) + " to " +
              std::to_string(kNewestOpset) + ", found " + std::to_string(opset));
}

}  // namespace sgtc::models
