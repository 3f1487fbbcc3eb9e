#include "runtime/launch/job.h"

#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("a job of one rank needs nobody") {
  const std::unique_ptr<Job> job = Job::alone();
  CHECK(job->rank() == 0);
  CHECK(job->size() == 1);
  CHECK(job->self().local_size == 1);
  CHECK(job->threads() >= 1);
  CHECK(job->all_gather("a") == std::vector<std::string>{"a"});
  CHECK(job->broadcast("b") == "b");
  job->barrier();
  job->enter(1, "send", 0);
  CHECK(job->may_begin_step(1));
  CHECK_FALSE(job->lost());
  CHECK(job->leave(0) == 0);
}

}  // namespace sgtc::runtime
