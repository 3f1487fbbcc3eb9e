// What a position does with its tensors, in words.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/kernel_time.h"
#include "plan/format.h"

namespace sgtc {

/// A call of a task of a position, or a communication.
struct CallId {
  size_t task = 0;  // in `tasks`
  size_t call = 0;
  auto operator<=>(const CallId&) const = default;
};

/// A call in words; the lines between the two are of the other nodes that it computes.
struct CallText {
  std::string work;                  // what it computes and what that is predicted to take
  std::string uses;                  // what it reads and writes
  std::vector<std::string> written;  // tensors
};

class PositionExplainer {
 public:
  /// All must outlive this. The plan has to be one that verify_plan accepts.
  PositionExplainer(const plan::Plan& plan, const plan::Position& position,
                    const KernelClock& clock);

  /// Those that the position runs, in the order in which a step, and then an evaluation, begin
  /// them.
  const std::vector<const plan::Task*>& tasks() const { return tasks_; }
  const plan::Call& call(const CallId& id) const { return tasks_[id.task]->calls[id.call]; }

  double seconds_of(const plan::Call& call) const;
  CallText call_text(const CallId& id) const;
  /// Of a communication: with whom, and what.
  std::string communication_text(const plan::Task& task) const;
  /// How long a tensor is needed, whether the backward phase computes it again, where it lies and
  /// with what it shares its bytes.
  std::string buffer_text(const plan::Buffer& buffer) const;

  /// All of it about a node or tensor; empty if the position has neither.
  std::string name_text(const std::string& name) const;

 private:
  struct Life {
    CallId first, last;
    bool is_used = false;
  };

  std::string name_of(const CallId& id) const;
  void find_tasks();
  void visit(const CallId& id, const std::vector<plan::Argument>& arguments);
  std::string need_of(const plan::Buffer& buffer) const;
  std::vector<const plan::Buffer*> sharers_of(const plan::Buffer& buffer) const;

  const plan::Plan& plan_;
  const plan::Position& position_;
  const KernelClock& clock_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, const plan::Buffer*> buffers_;
  std::vector<const plan::Task*> tasks_;
  std::map<std::string, Life> lives_;  // by buffer
};

/// Names with commas between them.
std::string list_text(const std::vector<std::string>& names);

}  // namespace sgtc
