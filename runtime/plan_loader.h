// The embedded plans, and the choice of the one that a run executes.
#pragma once

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

/// Among the plans for the number of ranks and the --dim sizes asked for, the one that the data
/// fits: one whose steps leave no rows over if there is one, and of those the one with the largest
/// step. Binds `data` to it. Dies if none fits, with the reason of the last one.
const plan::Plan& choose_plan(const std::vector<plan::Plan>& plans, const Options& options,
                              const std::vector<DataFile>& files, DataSet& data);

}  // namespace sgtc::runtime
