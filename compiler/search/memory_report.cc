#include "search/memory_report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/buffer_contents.h"
#include "plan/live_buffers.h"
#include "plan/quantities.h"

namespace sgtc {
namespace {

constexpr size_t kMostLines = 8;

std::vector<std::pair<int64_t, std::string>> largest(const std::map<std::string, int64_t>& bytes) {
  std::vector<std::pair<int64_t, std::string>> list;
  for (const auto& [name, size] : bytes) list.emplace_back(size, name);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  return list;
}

}  // namespace

std::string live_bytes_text(const plan::Plan& plan, int64_t position) {
  const plan::Position& placed = plan.positions[static_cast<size_t>(position)];
  const BufferContents buffers(plan, position);
  std::map<std::string, std::map<std::string, int64_t>> layers_of;
  std::map<std::string, int64_t> kinds;
  for (const LiveBuffer& live : find_live_peak(plan, placed, "train").live) {
    const Contents contents = buffers.of(*live.buffer);
    kinds[contents.kind] += live.bytes;
    layers_of[contents.kind][contents.layer] += live.bytes;
  }
  std::string text;
  for (const auto& [bytes, kind] : largest(kinds)) {
    text += "\n  " + bytes_text(bytes) + " " + kind;
    const auto layers = largest(layers_of[kind]);
    std::string list;
    for (size_t i = 0; i < std::min(layers.size(), kMostLines); ++i) {
      list += (list.empty() ? ": " : ", ") + layers[i].second + " " + bytes_text(layers[i].first);
    }
    if (layers.size() > kMostLines) {
      list += " and " + std::to_string(layers.size() - kMostLines) + " more layers";
    }
    text += list;
  }
  return text;
}

}  // namespace sgtc
