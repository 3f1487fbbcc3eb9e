#include "runtime/plan_loader.h"

#include "runtime/child.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

plan::Plan plan_of(int64_t pp, int64_t dp, int64_t rows) {
  plan::Plan plan;
  plan.mesh = {{"pp", pp}, {"dp", dp}, {"tp", 1}};
  plan.dims["B"] = rows;
  plan.micro_batch_rows = rows;
  plan.micro_batches = 3;
  plan.positions.resize(static_cast<size_t>(pp));
  return plan;
}

const std::vector<plan::Plan> kPlans = {plan_of(2, 2, 4), plan_of(2, 1, 4), plan_of(4, 1, 4),
                                        plan_of(4, 1, 8)};

// "PPxDP B" of the plan that is chosen for programs without inputs.
std::string chosen(int64_t ranks, const Options& options = {}) {
  DataSet data;
  const plan::Plan& plan = choose_plan(kPlans, ranks, options, {}, data);
  return std::to_string(plan.mesh[0].size) + "x" + std::to_string(plan.mesh[1].size) + " " +
         std::to_string(plan.dims.at("B"));
}

std::string refusal(int64_t ranks, const Options& options = {}) {
  return run_child([&] { return static_cast<int>(chosen(ranks, options).size()); }).errors;
}

}  // namespace

TEST_CASE("the first mesh of as many ranks is chosen, or the one that is asked for") {
  CHECK(chosen(4) == "2x2 4");
  CHECK(chosen(2) == "2x1 4");
  Options options;
  options.mesh = "4x1";
  CHECK(chosen(4, options) == "4x1 8");
  options.dims["B"] = 4;
  CHECK(chosen(4, options) == "4x1 4");
}

TEST_CASE("numbers of ranks are those of the plans asked for, in order") {
  CHECK(plan_ranks(kPlans, {}) == std::vector<int64_t>{4, 2, 4, 4});
  Options options;
  options.mesh = "2x1";
  CHECK(plan_ranks(kPlans, options) == std::vector<int64_t>{2});
}

TEST_CASE("meshes that there are not are refused with those that there are") {
  CHECK(meshes_text(kPlans) == "2x2 (4 ranks) or 2x1 (2 ranks) or 4x1 (4 ranks)");
  CHECK(refusal(3) == "error: number of ranks: the program was compiled for " +
                          meshes_text(kPlans) +
                          ", found 3; start that many, or compile it with another --mesh\n");
  Options options;
  options.mesh = "1x4";
  CHECK(refusal(4, options) ==
        "error: --mesh 1x4: no plan is for this mesh; compiled are: 2x2, 2x1, 4x1\n");
}

TEST_CASE("a step takes the rows of all replicas") {
  CHECK(rows_per_step(kPlans[0]) == 24);
  CHECK(rows_per_step(kPlans[1]) == 12);
}

}  // namespace sgtc::runtime
