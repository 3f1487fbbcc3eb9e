// The graphs whose generated kernels are checked and measured on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sgtc::testing {

struct LoopCase {
  std::string name;
  std::string text;                  // of the graph
  double tolerance = 2e-6;           // |found - expected| <= tolerance * (1 + |expected|)
  bool in_place = false;             // results take the bytes of the states that they may share
  std::vector<int64_t> status = {};  // of a bad index: checked node, index, extent
  int64_t multiprocessors = 132;     // that lists of work are made for
  double units = 0;                  // if not 0: the largest error in units of f32's last place
  bool is_merged = false;            // loops of one form are one launch
};

/// Small ones, compared with the interpreter.
std::vector<LoopCase> checked_loops();

/// Matrix products for tensor cores, compared with the interpreter.
std::vector<LoopCase> checked_matmuls();

/// Attention and its gradient, compared with the interpreter.
std::vector<LoopCase> checked_attentions();

/// Anchors without epilogues for the kernels that run on any GPU, compared with the interpreter.
std::vector<LoopCase> checked_anchors();

/// Attention and its gradient by the kernels for any GPU, which sm_90a has no use for.
std::vector<LoopCase> checked_generic_attentions();

/// Matrix products by mma.sync, compared with the interpreter.
std::vector<LoopCase> checked_mma_matmuls();

/// Large anchors for the kernels that run on any GPU and for mma.sync.
std::vector<LoopCase> measured_anchors();

/// Loops on tensors of many sizes in one launch, compared with the interpreter.
std::vector<LoopCase> checked_merged_loops();

/// Large ones, whose bandwidth is measured.
std::vector<LoopCase> measured_loops();

/// The update and the norm of GPT-2's tensors, one by one and merged.
std::vector<LoopCase> measured_merged_loops();

/// The products of a layer of GPT-2 and their gradients, whose speed is measured.
std::vector<LoopCase> measured_matmuls();

}  // namespace sgtc::testing
