// Profiles of hardware and the times that follow from them.
#include "cost/hardware.h"

#include "cost/communication_time.h"
#include "cost/hardware_file.h"
#include "cost/kernel_time.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kProfile = R"({
  "format": "sgtc-hardware", "version": 1, "name": "two cores", "device": "cpu", "units": 2,
  "eager_bytes": 1024,
  "rates": {"other": {"flops_per_second": 100, "bytes_per_second": 10, "seconds_per_call": 1}},
  "kernels": {"k_1": {"kind": "loop", "flops": 10, "bytes": 20, "blocks": 8, "units": 2,
                      "seconds": 0.5}},
  "host": {"bytes_per_second": 1000, "seconds_per_message": 0.5},
  "communications": [{"kind": "all_reduce", "members": 2,
                      "points": [{"bytes": 100, "seconds": 1}, {"bytes": 300, "seconds": 2}]}]
})";

// The profile with `from` replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = kProfile;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_hardware(text, "p.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Hardware simple_cpu() {
  Hardware hardware;
  hardware.rates[""] = {100, 10, 1};
  hardware.units = 4;
  hardware.host = {100, 1, 0};
  hardware.network = {10, 2, 0};
  return hardware;
}

double all_reduce(const Hardware& hardware, int64_t bytes, int64_t members, int64_t hosts = 1,
                  int64_t blocks = 0) {
  return communication_seconds(hardware, {"all_reduce", bytes, members, hosts, blocks});
}

}  // namespace

TEST_CASE("a profile is read") {
  const Hardware hardware = parse_hardware(kProfile, "p.json");
  CHECK(hardware.name == "two cores");
  CHECK(hardware.units == 2);
  CHECK(hardware.eager_bytes == 1024);
  CHECK(hardware.rates.at("") == KernelRate{100, 10, 1});
  CHECK(hardware.kernels.at("k_1") == MeasuredKernel{"loop", 10, 20, 8, 2, 0.5});
  CHECK(hardware.host == Link{1000, 0.5, 0});
  CHECK(hardware.network == hardware.host);
  CHECK(hardware.communications.at(0).points.size() == 2);
}

TEST_CASE("a preset says what a profile does not") {
  const Hardware preset = hardware_preset("h200");
  const Hardware hardware = parse_hardware(
      R"({"format": "sgtc-hardware", "version": 1, "name": "here", "device": "gpu", "units": 100,
          "preset": "h200", "kernels": {}, "host": {"bytes_per_second": 7, "seconds_per_message": 1}})",
      "p.json");
  CHECK(hardware.name == "here");
  CHECK(hardware.units == 100);
  CHECK(hardware.host == Link{7, 1, 0});
  CHECK(hardware.rates == preset.rates);
  CHECK(hardware.memory_bytes_per_second == preset.memory_bytes_per_second);
  CHECK(hardware.communication_blocks == preset.communication_blocks);
  CHECK_THAT(error_of(changed("\"units\": 2", "\"units\": 2, \"preset\": \"h300\"")),
             ContainsSubstring("\"preset\": expected cpu, a100, h100 or h200, found \"h300\""));
}

TEST_CASE("mistakes in a profile are named") {
  CHECK_THAT(error_of("{"), ContainsSubstring("p.json: expected a profile in JSON"));
  CHECK_THAT(error_of("[]"), ContainsSubstring("expected an object, found []"));
  CHECK_THAT(error_of("{}"), ContainsSubstring("\"format\" is missing"));
  CHECK_THAT(error_of(changed("\"version\": 1", "\"version\": 2")),
             ContainsSubstring("\"version\": expected 1, found 2"));
  CHECK_THAT(error_of(changed("\"units\": 2", "\"units\": 0")),
             ContainsSubstring("\"units\": expected an integer of at least 1, found 0"));
  CHECK_THAT(
      error_of(changed("\"flops_per_second\": 100", "\"flops_per_second\": -1")),
      ContainsSubstring("rates/other: \"flops_per_second\": expected a number above 0, found -1"));
  CHECK_THAT(error_of(changed("\"seconds\": 0.5", "\"time\": 0.5")),
             ContainsSubstring("kernels/k_1: \"seconds\" is missing"));
  CHECK_THAT(error_of(changed("\"device\": \"cpu\"", "\"device\": \"tpu\"")),
             ContainsSubstring("\"device\": expected \"cpu\" or \"gpu\", found \"tpu\""));
  CHECK_THAT(error_of(changed("\"eager_bytes\"", "\"eager\"")),
             ContainsSubstring("\"eager\" is not a key here; expected are"));
  CHECK_THAT(error_of(changed("\"all_reduce\"", "\"reduce\"")),
             ContainsSubstring("communications/0: \"kind\": expected send, all_reduce"));
  CHECK_THAT(error_of(changed("\"bytes\": 300", "\"bytes\": 100")),
             ContainsSubstring("\"points\": expected at least one point, in ascending bytes"));
}

TEST_CASE("a profile that is neither preset nor file is refused") {
  CHECK_THROWS_WITH(read_hardware("h300"), ContainsSubstring("--hardware h300: expected cpu"));
  for (const std::string& name : hardware_presets()) CHECK(read_hardware(name).name == name);
}

TEST_CASE("a target has a preset of its kind") {
  CHECK_FALSE(default_hardware("cpu").is_gpu());
  CHECK(default_hardware("sm_80").units == 108);
  CHECK(default_hardware("sm_90a").units == 132);
}

TEST_CASE(
    "a kernel is bound by arithmetic or by memory and uses the units that it has blocks for") {
  const Hardware hardware = simple_cpu();
  const KernelClock clock(hardware, 4);
  const KernelTime compute = clock.time({"k", "loop", "f32", 1000, 10, 8});
  CHECK(compute.units == 4);
  CHECK(compute.seconds == 1000.0 / 400 + 1);
  const KernelTime memory = clock.time({"k", "loop", "f32", 10, 1000, 2});
  CHECK(memory.units == 2);
  CHECK(memory.seconds == 1000.0 / 20 + 1);
}

TEST_CASE("all units together are bound by the memory") {
  Hardware hardware = simple_cpu();
  hardware.memory_bytes_per_second = 25;
  CHECK(KernelClock(hardware, 4).time({"k", "loop", "f32", 0, 100, 8}).seconds == 5);
  CHECK(KernelClock(hardware, 2).time({"k", "loop", "f32", 0, 100, 8}).seconds == 6);
  CHECK(KernelClock(hardware, 4).rate("loop").bytes_per_second == 25);
  CHECK(KernelClock(hardware, 2).rate("loop").bytes_per_second == 20);
  CHECK(KernelClock(hardware, 4).rate("loop").flops_per_second == 400);
}

TEST_CASE("a type may have rates of its own") {
  Hardware hardware = simple_cpu();
  hardware.rates["matmul bf16"] = {1000, 10, 1};
  const KernelClock clock(hardware, 1);
  CHECK(clock.time({"k", "matmul", "bf16", 1000, 0, 1}).seconds == 2);
  CHECK(clock.time({"k", "matmul", "f32", 1000, 0, 1}).seconds == 11);
}

TEST_CASE("a measured kernel takes what was measured, on more units less") {
  Hardware hardware = simple_cpu();
  hardware.kernels["k_1"] = {"loop", 10, 20, 8, 2, 0.5};
  CHECK(KernelClock(hardware, 2).time({"k_1", "loop", "f32", 10, 20, 8}).seconds == 0.5);
  CHECK(KernelClock(hardware, 4).time({"k_1", "loop", "f32", 10, 20, 8}).seconds == 0.25);
  CHECK(KernelClock(hardware, 1).time({"k_1", "loop", "f32", 10, 20, 8}).seconds == 1);
  CHECK(KernelClock(hardware, 3).time({"k_1", "loop", "f32", 10, 20, 8}).seconds == 0.375);
}

TEST_CASE("rates are fitted to measured kernels") {
  Hardware hardware = simple_cpu();
  hardware.rates.clear();
  const KernelRate truth = {30e9, 7e9, 3e-6};
  for (int i = 0; i < 12; ++i) {
    const int64_t flops = int64_t{1} << (2 * i);
    const int64_t bytes = int64_t{1} << (2 * (11 - i));
    const double seconds = roofline_seconds(truth, flops, bytes, 2, 0);
    hardware.kernels["k_" + std::to_string(i)] = {"matmul", flops, bytes, 8, 2, seconds};
  }
  const KernelRate found = fit_rate(hardware, "matmul", {50e9, 12e9, 1e-6});
  CHECK(found.flops_per_second == Approx(truth.flops_per_second).epsilon(0.05));
  CHECK(found.bytes_per_second == Approx(truth.bytes_per_second).epsilon(0.05));
  CHECK(found.seconds_per_call == Approx(truth.seconds_per_call).epsilon(0.05));
  const KernelTime time = KernelClock(hardware, 2).time({"new", "matmul", "f32", 1 << 20, 64, 8});
  CHECK(time.seconds == Approx(roofline_seconds(truth, 1 << 20, 64, 2, 0)).epsilon(0.05));
}

TEST_CASE("collectives send the bytes of a ring") {
  CHECK(traffic_of({"all_reduce", 100, 4, 1, 0}).host == 150);
  CHECK(traffic_of({"all_gather", 100, 4, 1, 0}).host == 75);
  CHECK(traffic_of({"reduce_scatter", 100, 4, 1, 0}).host == 75);
  CHECK(traffic_of({"send", 100, 2, 1, 0}).host == 100);
  CHECK(traffic_of({"all_reduce", 100, 1, 1, 0}).host == 0);
}

TEST_CASE("a ring over hosts passes from host to host as often as there are hosts") {
  const LinkTraffic traffic = traffic_of({"all_reduce", 100, 4, 2, 0});
  CHECK(traffic.host == 75);
  CHECK(traffic.network == 75);
  CHECK(traffic_of({"send", 100, 2, 2, 0}).network == 100);
}

TEST_CASE("a communication takes its rounds and its bytes") {
  const Hardware hardware = simple_cpu();
  CHECK(all_reduce(hardware, 100, 1) == 0);
  CHECK(all_reduce(hardware, 100, 2) == 2 * 1 + 1);
  CHECK(all_reduce(hardware, 400, 4) == 3 * 1 + 6);
  CHECK(communication_seconds(hardware, {"send", 100, 2, 1, 0}) == 2);
  CHECK(communication_seconds(hardware, {"send", 100, 2, 2, 0}) == 12);
}

TEST_CASE("ranks of a host bring their shares of the network") {
  const Hardware hardware = simple_cpu();
  CHECK(all_reduce(hardware, 400, 2, 2) == 2 * 2 + 40);
  CHECK(all_reduce(hardware, 400, 4, 2) == 3 * 2 + 30);
}

TEST_CASE("blocks bound the rate of a communication") {
  Hardware hardware = simple_cpu();
  hardware.host.bytes_per_second_per_block = 10;
  CHECK(all_reduce(hardware, 100, 2, 1, 4) == 2 + 2.5);
  CHECK(all_reduce(hardware, 100, 2, 1, 16) == 2 + 1);
}

TEST_CASE("measured communications are interpolated") {
  const Hardware hardware = parse_hardware(kProfile, "p.json");
  CHECK(all_reduce(hardware, 50, 2) == 1);
  CHECK(all_reduce(hardware, 200, 2) == 1.5);
  CHECK(all_reduce(hardware, 500, 2) == 3);
  CHECK(all_reduce(hardware, 1000, 4) == 3 * 0.5 + 1.5);
}

TEST_CASE("an all-reduce of NVLink takes what was measured on four GPUs") {
  const Hardware hardware = hardware_preset("h200");
  const auto within = [](double seconds, double expected) {
    return seconds > 0.9 * expected && seconds < 1.1 * expected;
  };
  CHECK(within(all_reduce(hardware, int64_t{25} << 20, 4), 143e-6));
  CHECK(within(all_reduce(hardware, int64_t{128} << 20, 4), 617e-6));
  CHECK(within(all_reduce(hardware, int64_t{512} << 20, 4), 2.32e-3));
}
