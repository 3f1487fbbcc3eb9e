// What the buffers of a position hold, as people call it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "plan/format.h"

namespace sgtc {

struct Contents {
  /// "parameters", "frozen parameters" and other roles of states, "inputs", "kept for the backward
  /// phase", "gradients", "computed again", or "computed".
  std::string kind;
  std::string layer;  // by plan/text.h
};

class BufferContents {
 public:
  /// `plan` must outlive this.
  BufferContents(const plan::Plan& plan, int64_t position);

  /// Of a buffer of the position.
  Contents of(const plan::Buffer& buffer) const;

 private:
  // The first call that writes a buffer.
  struct Writer {
    const plan::Task* task = nullptr;
    std::string layer;
  };

  void visit(const plan::Task& task, const plan::Call& call);

  const plan::Plan& plan_;
  const int64_t position_;
  std::map<std::string, const plan::Kernel*> kernels_;
  std::map<std::string, Writer> writers_;
};

}  // namespace sgtc
