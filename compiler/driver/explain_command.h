// `sgtc explain`: why a plan is as it is.
#pragma once

#include <optional>
#include <string>

namespace sgtc {

/// The arguments of `sgtc explain PLAN NODE`.
struct ExplainOptions {
  std::string plan;      // a file, as --emit=plan-json and `./train --print-plan` write it
  std::string node;      // a node or tensor of the model
  std::string hardware;  // a preset or a profile; empty: the preset of the plan's target
};

/// Parses what comes behind `sgtc`. Returns nothing when sgtc should exit at once with
/// `*exit_code`.
std::optional<ExplainOptions> parse_explain_options(int argc, const char* const* argv,
                                                    int* exit_code);

/// What simulate/explain.h says, for each plan of the file. Throws Error about a file that is not
/// one of plans, and about a name that it does not have.
std::string explain_node(const ExplainOptions& options);

}  // namespace sgtc
