// Why a step does not fit into memory, in words.
#pragma once

#include <string>

#include "plan/format.h"

namespace sgtc {

/// Lines about what is live in `position` when most bytes are live in a training step: by kind and,
/// for what is kept and computed, by layer; largest first.
std::string live_bytes_text(const plan::Plan& plan, int64_t position);

}  // namespace sgtc
