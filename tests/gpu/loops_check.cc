// Runs packed kernels on a GPU (loop_bundle.h): gpu_loops_check FOLDER [--measure].
//
// Every program runs three times with poisoned results: with the largest grid of use twice, and
// with a grid of three blocks. Results have to agree with the expected ones, and bit for bit with
// each other. With --measure the large programs' bandwidth is printed instead.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "gpu/cuda_driver.h"
#include "gpu/loop_bundle.h"
#include "support/half.h"

namespace sgtc::testing {
namespace {

constexpr uint32_t kPoisonWord = 0xffadffad;
constexpr int64_t kMapElementBytes = 2;  // of a tensor map

class Program {
 public:
  Program(const LoopProgram& program, const std::string& folder) : program_(program) {
    for (const LoopBuffer& buffer : program.buffers) {
      const auto bytes = static_cast<size_t>(buffer.bytes + 15) / 16 * 16;
      memory_.push_back(std::make_unique<DeviceMemory>(std::max<size_t>(bytes, 16)));
    }
    for (const LoopLaunch& launch : program.launches) {
      const std::string file = folder + "/" + launch.symbol;
      const bool is_assembled = std::filesystem::exists(file + ".cubin");
      kernels_.emplace_back(file + (is_assembled ? ".cubin" : ".ptx"), launch.symbol);
      maps_.push_back(maps_of(launch));
      tables_.push_back(table_of(launch));
    }
  }

  void fill() {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const LoopBuffer& buffer = program_.buffers[i];
      memory_[i]->set(kPoisonWord);
      const auto whole = static_cast<size_t>(buffer.bytes);
      if (!buffer.pattern.empty()) memory_[i]->write_repeated(buffer.pattern, whole);
    }
  }

  void run(int64_t most_blocks) {
    for (size_t i = 0; i < kernels_.size(); ++i) start(i, most_blocks);
  }

  std::string read(int64_t buffer) const {
    std::string bytes(static_cast<size_t>(program_.buffers[static_cast<size_t>(buffer)].bytes), 0);
    memory_[static_cast<size_t>(buffer)]->read(bytes.data(), bytes.size());
    return bytes;
  }

  std::vector<std::string> read_all() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < memory_.size(); ++i) all.push_back(read(static_cast<int64_t>(i)));
    return all;
  }

 private:
  // The tensor maps of a launch, one after the other.
  std::unique_ptr<DeviceMemory> maps_of(const LoopLaunch& launch) const {
    std::vector<hopper::TensorMap> maps;
    for (const LoopMap& map : launch.maps) {
      TensorBox tensor{map.sizes,
                       map.strides,
                       {static_cast<uint32_t>(map.box[0]), static_cast<uint32_t>(map.box[1])}};
      for (int64_t& stride : tensor.strides) stride /= kMapElementBytes;
      const DeviceMemory& memory = *memory_[static_cast<size_t>(map.buffer)];
      maps.push_back(
          encode_tensor_map(memory.address() + static_cast<uint64_t>(map.offset), tensor));
    }
    const size_t bytes = maps.size() * sizeof(hopper::TensorMap);
    auto memory = std::make_unique<DeviceMemory>(std::max<size_t>(bytes, 16));
    if (bytes > 0) memory->write(maps.data(), bytes);
    return memory;
  }

  std::vector<uint64_t> addresses_of(const LoopLaunch& launch) const {
    std::vector<uint64_t> addresses;
    for (int64_t buffer : launch.buffers) {
      addresses.push_back(memory_[static_cast<size_t>(buffer)]->address());
    }
    return addresses;
  }

  // Of an indirect launch; null for others.
  std::unique_ptr<DeviceMemory> table_of(const LoopLaunch& launch) const {
    if (launch.indirect == 0) return nullptr;
    const std::vector<uint64_t> addresses = addresses_of(launch);
    const size_t bytes = addresses.size() * sizeof(uint64_t);
    auto memory = std::make_unique<DeviceMemory>(bytes);
    memory->write(addresses.data(), bytes);
    return memory;
  }

  void start(size_t i, int64_t most_blocks) {
    const LoopLaunch& launch = program_.launches[i];
    std::vector<uint64_t> values = addresses_of(launch);
    if (tables_[i] != nullptr) values = {tables_[i]->address()};
    values.push_back(0);  // the micro-batch
    for (size_t m = 0; m < launch.maps.size(); ++m) {
      values.push_back(maps_[i]->address() + m * sizeof(hopper::TensorMap));
    }
    values.push_back(0);  // no stamps
    std::vector<void*> parameters;
    for (uint64_t& value : values) parameters.push_back(&value);
    Launch shape;
    shape.blocks = static_cast<uint32_t>(launch.any_grid != 0 ? std::min(launch.blocks, most_blocks)
                                                              : launch.blocks);
    shape.threads = static_cast<uint32_t>(launch.threads);
    shape.shared_bytes = static_cast<uint32_t>(launch.shared_bytes);
    shape.cluster = static_cast<uint32_t>(launch.cluster);
    if (shape.blocks > 0) kernels_[i].start_with_all(shape, parameters.data());
  }

  const LoopProgram& program_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::vector<Kernel> kernels_;
  std::vector<std::unique_ptr<DeviceMemory>> maps_;    // of each launch
  std::vector<std::unique_ptr<DeviceMemory>> tables_;  // the same
};

template <typename T>
double element(const std::string& bytes, size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double element_of(const std::string& dtype, const std::string& bytes, size_t i) {
  if (dtype == "f32") return element<float>(bytes, i);
  if (dtype == "f64") return element<double>(bytes, i);
  if (dtype == "f16") return half_to_float(static_cast<uint16_t>(element<uint16_t>(bytes, i)));
  if (dtype == "bf16") {
    return bfloat_to_float(static_cast<uint16_t>(element<uint16_t>(bytes, i)));
  }
  if (dtype == "i8") return element<int8_t>(bytes, i);
  if (dtype == "i16") return element<int16_t>(bytes, i);
  if (dtype == "i32") return element<int32_t>(bytes, i);
  if (dtype == "i64") return element<int64_t>(bytes, i);
  if (dtype == "u16") return element<uint16_t>(bytes, i);
  if (dtype == "u32") return element<uint32_t>(bytes, i);
  if (dtype == "u64") return element<uint64_t>(bytes, i);
  return element<uint8_t>(bytes, i);
}

double largest_error(const LoopProgram& program, double expected) {
  if (program.units == 0) return program.tolerance * (1 + std::abs(expected));
  const int exponent = expected == 0 ? -126 : std::max(std::ilogb(expected), -126);
  return std::ldexp(program.units, exponent - 23);
}

bool agrees(const LoopProgram& program, double found, double expected) {
  return found == expected || (std::isnan(found) && std::isnan(expected)) ||
         std::abs(found - expected) <= largest_error(program, expected);
}

bool check_results(const LoopProgram& program, const std::vector<std::string>& memory) {
  for (const LoopExpectation& expectation : program.expectations) {
    const std::string& bytes = memory[static_cast<size_t>(expectation.buffer)];
    for (size_t i = 0; i < expectation.values.size(); ++i) {
      const double found = element_of(expectation.dtype, bytes, i);
      if (agrees(program, found, expectation.values[i])) continue;
      std::printf("FAILED %s: %s[%zu] is %.9g, expected %.9g\n", program.name.c_str(),
                  expectation.name.c_str(), i, found, expectation.values[i]);
      return false;
    }
  }
  for (size_t i = 0; i < program.status.size(); ++i) {
    int64_t word = 0;
    std::memcpy(&word, memory[0].data() + 8 * i, 8);
    if (word == program.status[i]) continue;
    std::printf("FAILED %s: word %zu of the status is %lld, expected %lld\n", program.name.c_str(),
                i, static_cast<long long>(word), static_cast<long long>(program.status[i]));
    return false;
  }
  return true;
}

bool check_program(const LoopProgram& program, const std::string& folder) {
  Program runner(program, folder);
  std::vector<std::string> first;
  bool good = true;
  for (int64_t most_blocks : {INT32_MAX, INT32_MAX, 3}) {
    runner.fill();
    runner.run(most_blocks);
    synchronize_device();
    const std::vector<std::string> memory = runner.read_all();
    if (first.empty()) {
      first = memory;
      good = check_results(program, memory);
    } else if (memory != first) {
      std::printf("FAILED %s: the bits change from run to run\n", program.name.c_str());
      return false;
    }
  }
  return good;
}

void measure_program(const LoopProgram& program, const std::string& folder) {
  constexpr int kRuns = 20;
  constexpr int kTogether = 8;  // without a pause, as in a step
  Program runner(program, folder);
  runner.fill();
  std::vector<double> seconds;
  for (int i = 0; i < kRuns + 3; ++i) {
    Stopwatch watch;
    watch.start();
    for (int run = 0; run < kTogether; ++run) runner.run(INT32_MAX);
    const double time = watch.stop() / kTogether;
    if (i >= 3) seconds.push_back(time);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::printf("%-42s %8.1f us %6.0f GB/s %6.1f TFLOP/s\n", program.name.c_str(), 1e6 * median,
              1e-9 * static_cast<double>(program.moved_bytes) / median,
              1e-12 * static_cast<double>(program.operations) / median);
}

}  // namespace
}  // namespace sgtc::testing

int main(int argc, char** argv) {
  using namespace sgtc::testing;
  const bool measures = argc == 3 && std::string(argv[2]) == "--measure";
  if (argc != 2 && !measures) {
    std::fprintf(stderr, "usage: %s FOLDER [--measure]\n", argv[0]);
    return 2;
  }
  std::printf("%s\n", open_hopper_or_skip().name.c_str());
  const std::string folder = argv[1];
  const auto programs = read_bundle(folder + (measures ? "/measured.bundle" : "/checked.bundle"));
  size_t failed = 0;
  for (const LoopProgram& program : programs) {
    if (measures) {
      measure_program(program, folder);
    } else {
      failed += check_program(program, folder) ? 0 : 1;
    }
  }
  if (!measures) std::printf("%zu programs, %zu failed\n", programs.size(), failed);
  return failed == 0 && !programs.empty() ? 0 : 1;
}
