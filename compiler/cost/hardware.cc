#include "cost/hardware.h"

#include <algorithm>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

// A server that 64 ranks share: a core for each, and shared memory between them.
Hardware nominal_cpu() {
  Hardware cpu;
  cpu.name = "cpu";
  cpu.units = 64;
  cpu.ranks_per_host = 64;
  cpu.rates[""] = {50e9, 12e9, 1e-6};
  cpu.host = {5e9, 5e-6, 0};
  cpu.network = {2.5e9, 30e-6, 0};
  cpu.eager_bytes = 256 << 10;
  return cpu;
}

// What a GPU's data sheet says, with the shares of it that kernels of an H200 sustain.
struct GpuSheet {
  const char* name = "";
  int64_t multiprocessors = 0;
  double tensor_flops = 0;  // dense products of 16-bit floats
  double vector_flops = 0;  // f32 without tensor cores
  double memory_bytes_per_second = 0;
  double link_bytes_per_second = 0;  // NVLink, one direction
  double network_bytes_per_second = 0;
};

constexpr double kProductShare = 0.63;      // 620 of 989 TFLOP/s at the power limit
constexpr double kAttentionShare = 0.33;    // 320 forward, causal, heads of 64
constexpr double kGradientShare = 0.28;     // 281
constexpr double kVectorShare = 0.3;        // products of f32
constexpr double kMemoryShare = 0.89;       // 4.27 of 4.8 TB/s, a copy
constexpr double kLinkShare = 0.77;         // 347 of 450 GB/s, bus bandwidth of an all-reduce
constexpr double kUnitsForMemory = 0.6;     // of the multiprocessors saturate the memory
constexpr double kSecondsPerNode = 1.2e-6;  // of a CUDA graph
constexpr double kBlockBytesPerSecond = 26e9;

Hardware gpu(const GpuSheet& sheet) {
  const auto units = static_cast<double>(sheet.multiprocessors);
  const double memory = kMemoryShare * sheet.memory_bytes_per_second;
  const double unit_bytes = memory / units / kUnitsForMemory;
  const auto rate = [&](double flops) {
    return KernelRate{flops / units, unit_bytes, kSecondsPerNode};
  };
  Hardware hardware;
  hardware.name = sheet.name;
  hardware.device = "gpu";
  hardware.units = sheet.multiprocessors;
  hardware.ranks_per_host = 8;
  hardware.memory_bytes_per_second = memory;
  const KernelRate vector = rate(kVectorShare * sheet.vector_flops);
  for (const char* kind : {"matmul", "conv", "conv_input_grad", "conv_weight_grad"}) {
    hardware.rates[kind] = vector;
    hardware.rates[std::string(kind) + " bf16"] = rate(kProductShare * sheet.tensor_flops);
  }
  hardware.rates["attention bf16"] = rate(kAttentionShare * sheet.tensor_flops);
  for (const char* kind : {"attention_grad", "attention_query_grad", "attention_key_grad"}) {
    hardware.rates[std::string(kind) + " bf16"] = rate(kGradientShare * sheet.tensor_flops);
  }
  // Loops are bound by memory; a plan counts one operation for a function of many instructions.
  hardware.rates[""] = vector;
  hardware.host = {kLinkShare * sheet.link_bytes_per_second, 12e-6, kBlockBytesPerSecond};
  hardware.network = {sheet.network_bytes_per_second, 15e-6, kBlockBytesPerSecond};
  hardware.communication_blocks = 8;
  return hardware;
}

constexpr GpuSheet kA100 = {"a100", 108, 312e12, 19.5e12, 2.04e12, 300e9, 22e9};
constexpr GpuSheet kH100 = {"h100", 132, 989e12, 67e12, 3.35e12, 450e9, 45e9};
constexpr GpuSheet kH200 = {"h200", 132, 989e12, 67e12, 4.8e12, 450e9, 45e9};

}  // namespace

int64_t Hardware::units_of_rank(int64_t ranks) const {
  if (is_gpu()) return units;
  return std::max<int64_t>(1, units / (ranks_per_host > 0 ? ranks_per_host : ranks));
}

const std::vector<std::string>& hardware_presets() {
  static const std::vector<std::string> kNames = {"cpu", "a100", "h100", "h200"};
  return kNames;
}

Hardware hardware_preset(const std::string& name) {
  if (name == "cpu") return nominal_cpu();
  for (const GpuSheet& sheet : {kA100, kH100, kH200}) {
    if (name == sheet.name) return gpu(sheet);
  }
  throw Error("hardware \"" + name + "\" is unknown; expected cpu, a100, h100 or h200");
}

Hardware default_hardware(const std::string& target) {
  if (target == "cpu") return hardware_preset("cpu");
  return hardware_preset(target == "sm_80" ? "a100" : "h200");
}

}  // namespace sgtc
