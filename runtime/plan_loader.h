// The embedded plans, and the choice of the one that a run executes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data_set.h"
#include "options.h"
#include "plan/format.h"

namespace sgtc::runtime {

/// Parses the JSON array of plans. Dies if it is not one of the format that this runtime knows.
std::vector<plan::Plan> parse_plans(std::string_view text);

/// Rows that one step takes of each feed.
int64_t rows_per_step(const plan::Plan& plan);

/// The numbers of ranks that the plans of the --mesh and --dim asked for are for, in the order of
/// the plans. Dies if there is none.
std::vector<int64_t> plan_ranks(const std::vector<plan::Plan>& plans, const Options& options);

/// All meshes and their numbers of ranks, for messages: "2x1 (2 ranks) or 2x2 (4 ranks)".
std::string meshes_text(const std::vector<plan::Plan>& plans);

/// The plan for so many ranks: the first mesh of that size, with the --mesh and --dim asked for.
/// Among its sizes the one that the data fits: one whose steps leave no rows over if there is one,
/// and of those the one with the largest step. Binds `data` to it. Dies if none fits, with the
/// meshes that there are, or with the reason of the last one.
const plan::Plan& choose_plan(const std::vector<plan::Plan>& plans, int64_t ranks,
                              const Options& options, const std::vector<DataFile>& files,
                              DataSet& data);

}  // namespace sgtc::runtime
