#include "cpu_features.h"

#include <cpuid.h>

#include <cstdint>
#include <string_view>

namespace sgtc::runtime {
namespace {

enum Register { kEax, kEbx, kEcx, kEdx };

// Register state that the operating system must save: bits of XCR0.
constexpr uint64_t kNoState = 0;
constexpr uint64_t kYmmState = 0x6;
constexpr uint64_t kZmmState = 0xe6;
constexpr uint64_t kTileState = 0x60000;

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  uint64_t state;
};

constexpr Feature kFeatures[] = {
    {"cx8", 1, 0, kEdx, 8, kNoState},
    {"cmov", 1, 0, kEdx, 15, kNoState},
    {"mmx", 1, 0, kEdx, 23, kNoState},
    {"fxsr", 1, 0, kEdx, 24, kNoState},
    {"sse", 1, 0, kEdx, 25, kNoState},
    {"sse2", 1, 0, kEdx, 26, kNoState},
    {"sse3", 1, 0, kEcx, 0, kNoState},
    {"pclmul", 1, 0, kEcx, 1, kNoState},
    {"ssse3", 1, 0, kEcx, 9, kNoState},
    {"fma", 1, 0, kEcx, 12, kYmmState},
    {"cx16", 1, 0, kEcx, 13, kNoState},
    {"sse4.1", 1, 0, kEcx, 19, kNoState},
    {"sse4.2", 1, 0, kEcx, 20, kNoState},
    {"crc32", 1, 0, kEcx, 20, kNoState},
    {"movbe", 1, 0, kEcx, 22, kNoState},
    {"popcnt", 1, 0, kEcx, 23, kNoState},
    {"aes", 1, 0, kEcx, 25, kNoState},
    {"xsave", 1, 0, kEcx, 26, kNoState},
    {"avx", 1, 0, kEcx, 28, kYmmState},
    {"f16c", 1, 0, kEcx, 29, kYmmState},
    {"rdrnd", 1, 0, kEcx, 30, kNoState},
    {"fsgsbase", 7, 0, kEbx, 0, kNoState},
    {"bmi", 7, 0, kEbx, 3, kNoState},
    {"avx2", 7, 0, kEbx, 5, kYmmState},
    {"bmi2", 7, 0, kEbx, 8, kNoState},
    {"avx512f", 7, 0, kEbx, 16, kZmmState},
    {"avx512dq", 7, 0, kEbx, 17, kZmmState},
    {"rdseed", 7, 0, kEbx, 18, kNoState},
    {"adx", 7, 0, kEbx, 19, kNoState},
    {"avx512ifma", 7, 0, kEbx, 21, kZmmState},
    {"clflushopt", 7, 0, kEbx, 23, kNoState},
    {"clwb", 7, 0, kEbx, 24, kNoState},
    {"avx512cd", 7, 0, kEbx, 28, kZmmState},
    {"sha", 7, 0, kEbx, 29, kNoState},
    {"avx512bw", 7, 0, kEbx, 30, kZmmState},
    {"avx512vl", 7, 0, kEbx, 31, kZmmState},
    {"avx512vbmi", 7, 0, kEcx, 1, kZmmState},
    {"avx512vbmi2", 7, 0, kEcx, 6, kZmmState},
    {"gfni", 7, 0, kEcx, 8, kNoState},
    {"vaes", 7, 0, kEcx, 9, kYmmState},
    {"vpclmulqdq", 7, 0, kEcx, 10, kYmmState},
    {"avx512vnni", 7, 0, kEcx, 11, kZmmState},
    {"avx512bitalg", 7, 0, kEcx, 12, kZmmState},
    {"avx512vpopcntdq", 7, 0, kEcx, 14, kZmmState},
    {"avx512vp2intersect", 7, 0, kEdx, 8, kZmmState},
    {"amx-bf16", 7, 0, kEdx, 22, kTileState},
    {"avx512fp16", 7, 0, kEdx, 23, kZmmState},
    {"amx-tile", 7, 0, kEdx, 24, kTileState},
    {"amx-int8", 7, 0, kEdx, 25, kTileState},
    {"avxvnni", 7, 1, kEax, 4, kYmmState},
    {"avx512bf16", 7, 1, kEax, 5, kZmmState},
    {"avxifma", 7, 1, kEax, 23, kYmmState},
    {"sahf", 0x80000001, 0, kEcx, 0, kNoState},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNoState},
    {"prfchw", 0x80000001, 0, kEcx, 8, kNoState},
    {"64bit", 0x80000001, 0, kEdx, 29, kNoState},
};

// XCR0; 0 if the operating system does not use it.
uint64_t saved_state() {
  uint32_t registers[4] = {};
  __get_cpuid_count(1, 0, &registers[0], &registers[1], &registers[2], &registers[3]);
  if ((registers[kEcx] >> 27 & 1) == 0) return 0;
  uint32_t low;
  uint32_t high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool has_feature(std::string_view name, uint64_t state) {
  for (const Feature& feature : kFeatures) {
    if (feature.name != name) continue;
    uint32_t registers[4] = {};
    __get_cpuid_count(feature.leaf, feature.subleaf, &registers[0], &registers[1], &registers[2],
                      &registers[3]);
    return (registers[feature.reg] >> feature.bit & 1) != 0 &&
           (state & feature.state) == feature.state;
  }
  return false;
}

}  // namespace

MaybeFailure check_cpu_features(const std::vector<std::string>& needed, const std::string& target) {
  const uint64_t state = saved_state();
  std::string missing;
  for (const std::string& name : needed) {
    if (has_feature(name, state)) continue;
    missing += (missing.empty() ? "" : ", ") + name;
  }
  if (missing.empty()) return {};
  return Failure{"CPU",
                 "this program was compiled for " + target + ", and this CPU lacks " + missing,
                 "compile it with sgtc --cpu for a CPU without it"};
}

}  // namespace sgtc::runtime
