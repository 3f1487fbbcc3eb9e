// Checks of model sizes; each throws Error in the words of sgtc-model's options.
#pragma once

#include <cstdint>
#include <string>

#include "models/model_builder.h"

namespace sgtc::models {

/// `option` must be at least 1.
void check_positive(const std::string& option, int64_t value);

/// A batch must have a name or be at least 1.
void check_batch(const Dim& batch);

}  // namespace sgtc::models
