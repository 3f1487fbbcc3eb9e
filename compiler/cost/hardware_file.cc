#include "cost/hardware_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "support/diagnostics.h"
#include "support/file.h"

namespace sgtc {
namespace {

using Json = nlohmann::json;

constexpr int64_t kFormatVersion = 1;

// One object of the file, whose keys have to be asked for before `finish`.
class Reader {
 public:
  Reader(const Json& json, std::string file, std::string path)
      : json_(json), file_(std::move(file)), path_(std::move(path)) {
    if (!json.is_object()) fail("expected an object, found " + shown(json));
  }

  bool has(const std::string& key) const { return json_.contains(key); }

  const Json& value(const std::string& key) {
    known_.insert(key);
    if (!has(key)) fail("\"" + key + "\" is missing");
    return json_.at(key);
  }

  std::string text(const std::string& key) {
    const Json& found = value(key);
    if (!found.is_string()) fail(key, "a string", found);
    return found.get<std::string>();
  }

  int64_t integer(const std::string& key, int64_t least) {
    const Json& found = value(key);
    if (!found.is_number_integer() || found < least) {
      fail(key, "an integer of at least " + std::to_string(least), found);
    }
    return found.get<int64_t>();
  }

  int64_t integer_or(const std::string& key, int64_t least, int64_t otherwise) {
    return has(key) ? integer(key, least) : otherwise;
  }

  double positive(const std::string& key) {
    const Json& found = value(key);
    if (!is_finite(found) || found.get<double>() <= 0) fail(key, "a number above 0", found);
    return found.get<double>();
  }

  double positive_or(const std::string& key, double otherwise) {
    return has(key) ? positive(key) : otherwise;
  }

  Reader object(const std::string& key) { return Reader(value(key), file_, inside(key)); }

  // The members of an object, or elements of an array, as objects.
  std::vector<std::pair<std::string, Reader>> objects(const std::string& key) {
    std::vector<std::pair<std::string, Reader>> result;
    if (!has(key)) return result;
    const Json& found = value(key);
    if (!found.is_structured()) fail(key, "an object or a list", found);
    for (const auto& item : found.items()) {
      result.emplace_back(item.key(), Reader(item.value(), file_, inside(key) + "/" + item.key()));
    }
    return result;
  }

  void finish() const {
    for (const auto& item : json_.items()) {
      if (known_.count(item.key()) != 0) continue;
      std::string expected;
      for (const std::string& key : known_) expected += (expected.empty() ? "" : ", ") + key;
      fail("\"" + item.key() + "\" is not a key here; expected are " + expected);
    }
  }

  [[noreturn]] void fail(const std::string& key, const std::string& expected,
                         const Json& found) const {
    fail("\"" + key + "\": expected " + expected + ", found " + shown(found));
  }

 private:
  static bool is_finite(const Json& json) {
    return json.is_number() && std::isfinite(json.get<double>());
  }

  static std::string shown(const Json& json) {
    const std::string text = json.dump();
    return text.size() <= 40 ? text : text.substr(0, 40) + "…";
  }

  std::string inside(const std::string& key) const {
    return path_.empty() ? key : path_ + "/" + key;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(file_ + ": " + (path_.empty() ? "" : path_ + ": ") + problem +
                "; docs/hardware-profiles.md describes profiles");
  }

  const Json& json_;
  std::string file_;
  std::string path_;
  std::set<std::string> known_;
};

KernelRate read_rate(Reader reader) {
  const KernelRate rate = {reader.positive("flops_per_second"), reader.positive("bytes_per_second"),
                           reader.positive("seconds_per_call")};
  reader.finish();
  return rate;
}

MeasuredKernel read_kernel(Reader reader) {
  MeasuredKernel kernel;
  kernel.kind = reader.text("kind");
  kernel.flops = reader.integer("flops", 0);
  kernel.bytes = reader.integer("bytes", 0);
  kernel.blocks = reader.integer("blocks", 1);
  kernel.units = reader.integer("units", 1);
  kernel.seconds = reader.positive("seconds");
  reader.finish();
  return kernel;
}

Link read_link(Reader reader) {
  Link link;
  link.bytes_per_second = reader.positive("bytes_per_second");
  link.seconds_per_message = reader.positive("seconds_per_message");
  link.bytes_per_second_per_block = reader.positive_or("bytes_per_second_per_block", 0);
  reader.finish();
  return link;
}

std::pair<int64_t, double> read_point(Reader reader) {
  const std::pair<int64_t, double> point = {reader.integer("bytes", 1), reader.positive("seconds")};
  reader.finish();
  return point;
}

MeasuredCommunication read_communication(Reader reader) {
  static const std::vector<std::string> kKinds = {"send", "all_reduce", "reduce_scatter",
                                                  "all_gather", "broadcast"};
  MeasuredCommunication result;
  result.kind = reader.text("kind");
  if (std::find(kKinds.begin(), kKinds.end(), result.kind) == kKinds.end()) {
    reader.fail("kind", "send, all_reduce, reduce_scatter, all_gather or broadcast",
                reader.value("kind"));
  }
  result.members = reader.integer("members", 2);
  for (auto& [number, point] : reader.objects("points")) {
    result.points.push_back(read_point(std::move(point)));
  }
  const auto not_ascending = [](const auto& a, const auto& b) { return a.first >= b.first; };
  if (result.points.empty() || std::adjacent_find(result.points.begin(), result.points.end(),
                                                  not_ascending) != result.points.end()) {
    reader.fail("points", "at least one point, in ascending bytes", reader.value("points"));
  }
  reader.finish();
  return result;
}

// What the file leaves open.
Hardware start_of(Reader& reader) {
  Hardware start;
  start.host = start.network = hardware_preset("cpu").host;
  if (!reader.has("preset")) return start;
  const std::vector<std::string>& presets = hardware_presets();
  const std::string name = reader.text("preset");
  if (std::find(presets.begin(), presets.end(), name) == presets.end()) {
    reader.fail("preset", "cpu, a100, h100 or h200", reader.value("preset"));
  }
  return hardware_preset(name);
}

Hardware read(Reader reader) {
  if (reader.text("format") != "sgtc-hardware") {
    reader.fail("format", "\"sgtc-hardware\"", reader.value("format"));
  }
  if (reader.integer("version", 0) != kFormatVersion) {
    reader.fail("version", std::to_string(kFormatVersion), reader.value("version"));
  }
  Hardware hardware = start_of(reader);
  hardware.name = reader.text("name");
  hardware.device = reader.text("device");
  if (hardware.device != "cpu" && hardware.device != "gpu") {
    reader.fail("device", "\"cpu\" or \"gpu\"", reader.value("device"));
  }
  hardware.units = reader.integer("units", 1);
  hardware.ranks_per_host = reader.integer_or("ranks_per_host", 0, hardware.ranks_per_host);
  hardware.memory_bytes_per_second =
      reader.positive_or("memory_bytes_per_second", hardware.memory_bytes_per_second);
  hardware.communication_blocks =
      reader.integer_or("communication_blocks", 0, hardware.communication_blocks);
  hardware.eager_bytes = reader.integer_or("eager_bytes", 0, hardware.eager_bytes);
  for (auto& [kind, rate] : reader.objects("rates")) {
    hardware.rates[kind == "other" ? "" : kind] = read_rate(std::move(rate));
  }
  for (auto& [symbol, kernel] : reader.objects("kernels")) {
    hardware.kernels[symbol] = read_kernel(std::move(kernel));
  }
  if (hardware.rates.count("") == 0 && hardware.kernels.empty()) {
    reader.fail("rates", "an entry \"other\", or measured \"kernels\"",
                reader.has("rates") ? reader.value("rates") : Json());
  }
  if (reader.has("host")) hardware.host = hardware.network = read_link(reader.object("host"));
  if (reader.has("network")) hardware.network = read_link(reader.object("network"));
  for (auto& [number, communication] : reader.objects("communications")) {
    hardware.communications.push_back(read_communication(std::move(communication)));
  }
  reader.finish();
  return hardware;
}

}  // namespace

Hardware parse_hardware(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(file + ": expected a profile in JSON; it does not parse");
  return read(Reader(json, file, ""));
}

Hardware read_hardware(const std::string& name_or_file) {
  const std::vector<std::string>& presets = hardware_presets();
  if (std::find(presets.begin(), presets.end(), name_or_file) != presets.end()) {
    return hardware_preset(name_or_file);
  }
  if (!std::filesystem::exists(name_or_file)) {
    throw Error(
        "--hardware " + name_or_file +
        ": expected cpu, a100, h100, h200, or a profile that ./train --calibrate=FILE wrote; "
        "there is no such file");
  }
  return parse_hardware(read_file(name_or_file), name_or_file);
}

}  // namespace sgtc
