// Finds and loads libsgtc_gloo.so.
#pragma once

#include "gloo_plugin.h"

namespace sgtc::runtime {

/// Looks in the folders of SGTC_PLUGIN_PATH (separated by colons), then in the program's own, then
/// where sgtc built it. Dies, naming these, if there is none that can be loaded.
const SgtcGlooPlugin& load_gloo_plugin();

}  // namespace sgtc::runtime
