#include "simulate/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "plan/quantities.h"

namespace sgtc {
namespace {

constexpr size_t kShownLinks = 16;

std::string right(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string percent(double share) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f%%", share * 100);
  return text.data();
}

std::string fraction(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string bytes_cell(double bytes) { return bytes_text(std::llround(bytes)); }

double bytes_of(const SimulatedLink& link) { return link.host_bytes + link.network_bytes; }

std::string link_line(const std::string& name, const std::string& from, const std::string& to,
                      const SimulatedLink& link) {
  return "    " + left(name, 24) + right(from, 5) + right(to, 6) +
         right(exact_text(link.messages), 10) + right(bytes_cell(link.host_bytes), 14) +
         right(bytes_cell(link.network_bytes), 11) + right(seconds_text(link.seconds), 11) + "\n";
}

// Those that carry most, and the sum of the others.
std::string links_text(std::vector<SimulatedLink> links) {
  if (links.empty()) return "";
  std::stable_sort(links.begin(), links.end(), [](const SimulatedLink& a, const SimulatedLink& b) {
    return bytes_of(a) > bytes_of(b);
  });
  std::string text =
      "  link, from one rank          from    to  messages   in the host    network      alone\n";
  SimulatedLink others;
  for (size_t i = 0; i < links.size(); ++i) {
    const SimulatedLink& link = links[i];
    if (i < kShownLinks) {
      const std::string to = link.to < 0 ? "all" : std::to_string(link.to);
      text += link_line(link.communicator, std::to_string(link.from), to, link);
      continue;
    }
    others.messages += link.messages;
    others.host_bytes += link.host_bytes;
    others.network_bytes += link.network_bytes;
    others.seconds += link.seconds;
  }
  if (links.size() <= kShownLinks) return text;
  const auto count = static_cast<int64_t>(links.size() - kShownLinks);
  return text + link_line("and " + exact_text(count) + " more", "", "", others);
}

nlohmann::json name_item(const char* what, size_t position, int64_t stream,
                         const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", position}, {"tid", stream}, {"args", {{"name", name}}}};
}

nlohmann::json event_item(const plan::Entry& entry, int64_t stage, size_t position,
                          const SimulatedEntry& times) {
  return {{"name", entry.task},
          {"ph", "X"},
          {"pid", position},
          {"tid", entry.stream},
          {"ts", times.span.begin * 1e6},
          {"dur", (times.span.end - times.span.begin) * 1e6},
          {"args",
           {{"stage", stage}, {"micro_batch", entry.micro_batch}, {"posted", times.posted * 1e6}}}};
}

}  // namespace

std::string mesh_text(const plan::Plan& plan) {
  std::string text;
  for (const plan::Axis& axis : plan.mesh) {
    text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  }
  return text;
}

std::string machine_text(const Hardware& hardware) {
  const std::string units = plural(hardware.units, hardware.is_gpu() ? "multiprocessor" : "core");
  const std::string per_host = hardware.ranks_per_host == 0
                                   ? "all ranks on one host"
                                   : plural(hardware.ranks_per_host, "rank") + " per host";
  return hardware.name + " (" + units + ", " + per_host + ")";
}

std::string report_text(const plan::Plan& plan, const Hardware& hardware,
                        const Simulation& simulation) {
  std::string text =
      "simulation of " + simulation.schedule + " on " + machine_text(hardware) + "\n";
  const auto field = [&](const std::string& name, const std::string& value) {
    text += "  " + left(name, 14) + value + "\n";
  };
  field("mesh", mesh_text(plan) + " (" + plural(simulation.ranks, "rank") + ", " +
                    exact_text(simulation.simulated_ranks) + " simulated)");
  field("step", seconds_text(simulation.seconds));
  field("bubble", percent(simulation.bubble));
  field("overlap", fraction(simulation.overlap_ratio) + " of communication or computation");
  text += "  position     compute   communicate     exposed        idle  overlap   peak live\n";
  for (size_t p = 0; p < simulation.positions.size(); ++p) {
    const SimulatedPosition& position = simulation.positions[p];
    text += right(std::to_string(p), 10) + right(seconds_text(position.computing), 12) +
            right(seconds_text(position.communicating), 14) +
            right(seconds_text(position.exposed), 12) + right(seconds_text(position.idle), 12) +
            right(fraction(position.overlap_ratio()), 9) +
            right(bytes_text(position.peak_live_bytes), 12) + "\n";
  }
  return text + links_text(simulation.links);
}

std::string trace_json(const plan::Plan& plan, const Simulation& simulation) {
  std::string text = "{\"traceEvents\":[";
  const auto add = [&](const nlohmann::json& item) {
    text += (text.back() == '[' ? "\n" : ",\n") + item.dump();
  };
  for (size_t p = 0; p < simulation.positions.size(); ++p) {
    const SimulatedPosition& position = simulation.positions[p];
    const auto schedule = plan.positions[p].schedules.find(simulation.schedule);
    if (schedule == plan.positions[p].schedules.end()) continue;
    std::map<std::string, int64_t> stages;
    for (const plan::Task& task : plan.positions[p].tasks) stages[task.name] = task.stage;
    add(name_item("process_name", p, 0, "position " + std::to_string(p)));
    std::set<int64_t> streams;
    std::map<double, int64_t> live;  // the latest entry in list order has the say
    for (size_t e = 0; e < position.entries.size(); ++e) {
      const plan::Entry& entry = schedule->second[e];
      add(event_item(entry, stages.at(entry.task), p, position.entries[e]));
      streams.insert(entry.stream);
      live[position.entries[e].span.begin] = position.entries[e].live_bytes;
    }
    for (const auto& [begin, bytes] : live) {
      add({{"name", "live bytes"},
           {"ph", "C"},
           {"pid", p},
           {"ts", begin * 1e6},
           {"args", {{"bytes", bytes}}}});
    }
    for (const int64_t stream : streams) {
      add(name_item("thread_name", p, stream,
                    stream == 0 ? "compute" : "stream " + std::to_string(stream)));
    }
  }
  return text + "\n]}\n";
}

}  // namespace sgtc
