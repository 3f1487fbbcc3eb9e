// The price of a nest on a GPU: what fusion compares.
#pragma once

#include "passes/loop_nest.h"

namespace sgtc::gpu {

/// Nanoseconds of the nest's kernel on a large GPU (an H200), the launch included: the longer of
/// the times that its bytes and its instructions take. Bytes that an earlier sweep has read come
/// from registers or from the caches (thread_mapping.h says which), and accesses of scattered
/// elements cost whole sectors.
double estimate_nanoseconds(const LoopNest& nest);

}  // namespace sgtc::gpu
