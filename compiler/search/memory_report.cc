#include "search/memory_report.h"

#include <algorithm>
#include <map>
#include <vector>

#include "plan/live_buffers.h"
#include "plan/quantities.h"
#include "plan/text.h"

namespace sgtc {
namespace {

constexpr size_t kMostLines = 8;

struct Share {
  int64_t bytes = 0;
  std::map<std::string, int64_t> layers;
};

std::string kind_of(const plan::Plan& plan, int64_t position, const plan::Buffer& buffer) {
  for (const plan::State& state : plan.states) {
    if (state.position == position && state.buffer == buffer.name) return state.role + "s";
  }
  for (const plan::Feed& feed : plan.feeds) {
    if (feed.name == buffer.name) return "inputs";
  }
  if (buffer.scope == "slot") return "kept for the backward phase";
  return "computed";
}

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
  std::map<std::string, Share> shares;
  std::map<std::string, int64_t> kinds;
  for (const LiveBuffer& live : find_live_peak(plan, placed, "train").live) {
    const std::string kind = kind_of(plan, position, *live.buffer);
    kinds[kind] += live.bytes;
    shares[kind].layers[layer_of(live.buffer->name)] += live.bytes;
  }
  std::string text;
  for (const auto& [bytes, kind] : largest(kinds)) {
    text += "\n  " + bytes_text(bytes) + " " + kind;
    const auto layers = largest(shares[kind].layers);
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
