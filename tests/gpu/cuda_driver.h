// The CUDA driver for test programs, loaded at run time. Every failure prints the call and the
// driver's text and ends the program with status 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hopper/host.h"

namespace sgtc::testing {

/// A 64-bit address in the device's memory.
using DeviceAddress = uint64_t;

struct Device {
  int multiprocessors = 0;
  int major = 0, minor = 0;  // compute capability
  std::string name;
};

/// Makes the first GPU current. Ends the program with status 77 (skipped) where there is no driver,
/// no GPU, or one of another architecture than 9.0.
Device open_hopper_or_skip();

/// Device memory that lives as long as the object.
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  DeviceAddress address() const { return address_; }
  size_t bytes() const { return bytes_; }
  /// Fills with a pattern; the size must be a multiple of 4.
  void set(uint32_t word);
  void write(const void* from, size_t bytes);
  void read(void* to, size_t bytes) const;
  /// Fills the first `bytes` with copies of the pattern.
  void write_repeated(const std::string& pattern, size_t bytes);
  void copy_from(const DeviceMemory& other);

 private:
  DeviceAddress address_ = 0;
  size_t bytes_;
};

struct Launch {
  uint32_t blocks = 1;
  uint32_t threads = 1;
  uint32_t shared_bytes = 0;
  uint32_t cluster = 1;
};

/// A kernel of a loaded cubin.
class Kernel {
 public:
  Kernel() = default;
  /// `file` is a cubin; modules are loaded once and stay loaded.
  Kernel(const std::string& file, const std::string& name);
  /// Starts the kernel with one parameter, a structure.
  template <typename Parameters>
  void start(const Launch& launch, Parameters parameters) const {
    void* parameter = &parameters;
    start_with_all(launch, &parameter);
  }
  /// Starts the kernel with pointers to the values of all its parameters.
  void start_with_all(const Launch& launch, void** parameters) const;

 private:
  void* function_ = nullptr;
};

/// Waits for all work and reports its failures.
void synchronize_device();

/// The seconds between two points of the stream of work.
class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start();
  /// Waits for the work.
  double stop();

 private:
  void* begin_ = nullptr;
  void* end_ = nullptr;
};

/// A bfloat16 tensor whose dimension 0 is contiguous; strides of the others in elements, multiples
/// of 8. Boxes extend over dimensions 0 and 1.
struct TensorBox {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  uint32_t box[2];
};

/// The copy engine's description of a tensor, with the 128-byte swizzle.
hopper::TensorMap encode_tensor_map(DeviceAddress address, const TensorBox& tensor);

}  // namespace sgtc::testing
