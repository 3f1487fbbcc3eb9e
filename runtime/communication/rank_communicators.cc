#include "rank_communicators.h"

#include "plan_memory.h"

namespace sgtc::runtime {
namespace {

constexpr int kSpins = 2000;                       // up to 100 microseconds
constexpr int64_t kSleepNanoseconds = 50'000'000;  // between looks for lost peers

bool advance_all(Operation* const* operations, int64_t count) {
  bool done = true;
  for (int64_t i = 0; i < count; ++i) done &= operations[i]->advance();
  return done;
}

bool any_polls(Operation* const* operations, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (operations[i]->polls()) return true;
  }
  return false;
}

}  // namespace

RankCommunicators::RankCommunicators(Bell& bell, Watch& watch, bool has_own_cpu)
    : bell_(bell), watch_(watch), has_own_cpu_(has_own_cpu) {}

void RankCommunicators::add(const std::string& name, std::unique_ptr<Communicator> communicator) {
  communicators_[name] = std::move(communicator);
}

Communicator* RankCommunicators::find(const std::string& name) const {
  const auto found = communicators_.find(name);
  return found == communicators_.end() ? nullptr : found->second.get();
}

void RankCommunicators::complete(Operation* const* operations, int64_t count, bool busy) {
  for (int64_t i = 0; i < count; ++i) operations[i]->start();
  if (!advance_all(operations, count)) wait(operations, count, busy);
}

// Spins for a moment, then sleeps until a peer rings.
void RankCommunicators::wait(Operation* const* operations, int64_t count, bool busy) {
  const bool polls = any_polls(operations, count);
  const int spins = has_own_cpu_ && !busy ? kSpins : 0;
  for (int spin = 0; !advance_all(operations, count); ++spin) {
    if (watch_.lost()) watch_.exit_lost();
    if (polls) continue;
    if (spin < spins) {
      __builtin_ia32_pause();
      continue;
    }
    bell_.prepare_to_sleep();
    if (advance_all(operations, count)) {
      bell_.stay_awake();
      return;
    }
    bell_.sleep(kSleepNanoseconds);
  }
}

void RankCommunicators::run(const std::string& communicator, const CommunicationRequest& request) {
  Communicator* found = find(communicator);
  if (!found) die_of_bad_plan("this rank has no communicator " + communicator);
  const std::unique_ptr<Operation> operation = found->prepare(request);
  Operation* const list[] = {operation.get()};
  complete(list, 1);
}

}  // namespace sgtc::runtime
