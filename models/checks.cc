#include "models/checks.h"

#include "support/diagnostics.h"

namespace sgtc::models {

void check_positive(const std::string& option, int64_t value) {
  if (value >= 1) return;
  throw Error(option + ": expected at least 1, found " + std::to_string(value));
}

void check_batch(const Dim& batch) {
  if (batch.name.empty()) check_positive("--batch", batch.size);
}

}  // namespace sgtc::models
