// Checks of model sizes; each throws Error in the words of sgtc-model's options.
#pragma once

#include <cstdint>
#include <string>

#include "models/model_builder.h"

namespace sgtc::models {

/// `option` must be at least 1.
void check_positive(const std::string& option, int64_t value);

/// `option` must be a multiple of `divisor`, the number of `parts`.
void check_multiple(const std::string& option, int64_t value, int64_t divisor,
                    const std::string& parts);

/// A batch must have a name or be at least 1.
void check_batch(const Dim& batch);

/// The positions must suffice for the tokens of a row.
void check_context(int64_t context, int64_t seq);

/// A rate must be in [0, 1).
void check_dropout(float rate);

/// An opset must be one that the layers know.
void check_opset(int64_t opset);

}  // namespace sgtc::models
