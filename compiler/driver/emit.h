// Texts that `--emit` prints or writes.
#pragma once

#include <string>

#include "passes/kernelized_graph.h"

namespace sgtc {

/// The kernels of a program and the values between them as a Graphviz digraph.
std::string to_dot(const KernelizedGraph& program);

/// Writes `text` to `file` whole or not at all; "" and "-" mean standard output.
void emit_text(const std::string& text, const std::string& file);

}  // namespace sgtc
