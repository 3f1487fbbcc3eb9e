// What the stubs of the driver and of NCCL share; they are one library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "cuda/driver_functions.h"

namespace sgtc::runtime::cuda {

/// Work gives a result of the driver.
using StubWork = std::function<int()>;

struct GraphNodeObject {
  size_t index;
  std::string symbol;
  StubWork work;
};

struct GraphObject {
  std::deque<GraphNodeObject> nodes;
};

struct StreamObject {
  std::deque<StubWork> work;
  GraphObject* captured = nullptr;  // while its work goes into a graph
};

/// Puts work into the stream, or into the graph that it is captured in, under a name.
void put(Stream stream, const std::string& name, StubWork work);

/// A line of SGTC_STUB_LOG.
void log(const std::string& line);

/// The scripted result of a call.
int scripted(const std::string& name);

/// The number in a variable of the environment.
uint64_t number_from(const char* name, uint64_t otherwise);

// Logs the call and returns from the caller if the script says so.
#define STUB_ENTER(name, details)     \
  log(std::string(name) + (details)); \
  if (const int result = scripted(name)) return result

}  // namespace sgtc::runtime::cuda
