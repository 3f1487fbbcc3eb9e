// No allocation after start: a run of 100 steps allocates exactly as often as one of 2 steps. The
// counters replace the C library's functions for the whole test program.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "runtime/allocations.h"
#include "runtime/regression_data.h"
#include "support/catch.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<int64_t> allocations{0};
}

int64_t sgtc::runtime::allocation_count() { return allocations; }

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
}

namespace sgtc::runtime {
namespace {

// Allocations of a whole run in a child process.
int64_t allocations_of(const RegressionRun& run, const char* steps) {
  const auto arguments =
      run.arguments({"--steps", steps, "--shuffle", "--log", run.folder / "log"});
  const ChildResult result = run_child([&] {
    const int64_t before = allocations;
    const int code = call_program(run.program(), arguments);
    std::fprintf(stderr, "%lld", static_cast<long long>(allocations - before));
    return code;
  });
  CHECK(result.code == 0);
  return std::stoll(result.errors);
}

}  // namespace

TEST_CASE("steps do not allocate") {
  const RegressionRun run(32);
  const int64_t two = allocations_of(run, "2");
  CHECK(two > 0);
  CHECK(allocations_of(run, "100") == two);
}

}  // namespace sgtc::runtime

#else

int64_t sgtc::runtime::allocation_count() { return 0; }

#endif
