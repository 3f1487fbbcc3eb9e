// The page is data, as JSON, and the files of the folder `page`, which draw it in the browser. The
// data are those of the plan, its simulation and its explanations, put into numbers once per
// buffer, call and entry; everything else (what is live at a time, which calls a node has) the page
// finds in them.
#include "simulate/page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "page_blob.h"
#include "plan/buffer_contents.h"
#include "plan/live_buffers.h"
#include "plan/quantities.h"
#include "simulate/explain.h"
#include "simulate/position_explainer.h"
#include "simulate/ranks.h"
#include "simulate/report.h"

namespace sgtc {
namespace {

using nlohmann::json;

constexpr const char* kSchedule = "train";

// A tool that reads scripts in HTML ends one at "</", so no "<" is left in the data.
std::string script_text(const json& data) {
  std::string text;
  for (const char c : data.dump()) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

class PositionWriter {
 public:
  PositionWriter(const plan::Plan& plan, size_t number, const Simulation& simulation,
                 const KernelClock& clock)
      : plan_(plan),
        position_(plan.positions[number]),
        simulation_(simulation),
        simulated_(simulation.positions[number]),
        number_(number),
        explainer_(plan, position_, clock) {
    for (size_t t = 0; t < explainer_.tasks().size(); ++t) {
      task_numbers_[explainer_.tasks()[t]->name] = t;
    }
    for (size_t b = 0; b < position_.buffers.size(); ++b) {
      buffer_numbers_[&position_.buffers[b]] = b;
      buffer_names_[position_.buffers[b].name] = b;
    }
  }

  json run() const {
    json result = {{"stage", stage_text(plan_, simulation_, number_)},
                   {"arena", position_.arena_bytes},
                   {"peak", simulated_.peak_live_bytes},
                   {"evaluation_peak", find_live_peak(plan_, position_, "evaluate").bytes},
                   {"computing", simulated_.computing},
                   {"communicating", simulated_.communicating},
                   {"exposed", simulated_.exposed},
                   {"idle", simulated_.idle},
                   {"overlap", simulated_.overlap_ratio()},
                   {"tasks", tasks()},
                   {"entries", entries()},
                   {"buffers", buffers()}};
    add_memory(result);
    return result;
  }

 private:
  json tasks() const {
    json tasks = json::array();
    for (size_t t = 0; t < explainer_.tasks().size(); ++t) {
      const plan::Task& task = *explainer_.tasks()[t];
      json item = {{"name", task.name}, {"kind", task.kind}, {"calls", json::array()}};
      if (task.kind != "compute") item["text"] = explainer_.communication_text(task);
      for (size_t c = 0; c < task.calls.size(); ++c) item["calls"].push_back(call({t, c}));
      tasks.push_back(std::move(item));
    }
    return tasks;
  }

  json call(const CallId& id) const {
    const plan::Call& call = explainer_.call(id);
    const CallText text = explainer_.call_text(id);
    json written = json::array();
    for (const std::string& buffer : text.written) written.push_back(buffer_names_.at(buffer));
    return {{"nodes", call.nodes},
            {"work", text.work},
            {"uses", text.uses},
            {"written", std::move(written)},
            {"seconds", explainer_.seconds_of(call)}};
  }

  // Task, micro-batch, stream, posted, begin, end.
  json entries() const {
    json entries = json::array();
    const std::vector<plan::Entry>& schedule = position_.schedules.at(kSchedule);
    for (size_t e = 0; e < schedule.size(); ++e) {
      const SimulatedEntry& times = simulated_.entries[e];
      entries.push_back({task_numbers_.at(schedule[e].task), schedule[e].micro_batch,
                         schedule[e].stream, times.posted, times.span.begin, times.span.end});
    }
    return entries;
  }

  json buffers() const {
    const BufferContents contents(plan_, static_cast<int64_t>(number_));
    json buffers = json::array();
    for (const plan::Buffer& buffer : position_.buffers) {
      const Contents content = contents.of(buffer);
      buffers.push_back({{"name", buffer.name},
                         {"kind", content.kind},
                         {"layer", content.layer},
                         {"bytes", buffer.bytes},
                         {"offset", buffer.offset},
                         {"stride", buffer.stride},
                         {"text", explainer_.buffer_text(buffer)}});
    }
    return buffers;
  }

  // "times": seconds at which each of the times of LiveSpans begins, and the end of the last.
  // "spans": buffer, instance, first and last time.
  void add_memory(json& result) const {
    const LiveSpans live = find_live_spans(plan_, position_, kSchedule);
    json spans = json::array();
    for (const LiveSpan& span : live.spans) {
      spans.push_back({buffer_numbers_.at(span.buffer), span.instance, span.first, span.last});
    }
    result["spans"] = std::move(spans);
    result["times"] = times(live);
    result["places"] = json::array();
    for (const auto& [entry, call] : live.times) result["places"].push_back({entry, call});
  }

  // Calls share their entry's time as predicted. What is live follows the order of the list, so a
  // communication, which runs beside the kernels, comes directly before the next kernel.
  std::vector<double> times(const LiveSpans& live) const {
    const std::vector<plan::Entry>& schedule = position_.schedules.at(kSchedule);
    std::vector<double> times(live.times.size() + 1, simulation_.seconds);
    double at = 0;
    for (size_t i = 0; i < live.times.size();) {
      const auto e = static_cast<size_t>(live.times[i].first);
      const size_t task = task_numbers_.at(schedule[e].task);
      const size_t calls = explainer_.tasks()[task]->calls.size();
      if (calls == 0) {
        times[i++] = at;
        continue;
      }
      const Span& span = simulated_.entries[e].span;
      double all = 0;
      for (size_t c = 0; c < calls; ++c) all += explainer_.seconds_of(explainer_.call({task, c}));
      double before = 0;
      for (size_t c = 0; c < calls; ++c) {
        times[i++] = span.begin + (all > 0 ? before / all * (span.end - span.begin) : 0);
        before += explainer_.seconds_of(explainer_.call({task, c}));
      }
      at = span.end;
    }
    times.front() = 0;  // what is there all along is there before the first call too
    return times;
  }

  const plan::Plan& plan_;
  const plan::Position& position_;
  const Simulation& simulation_;
  const SimulatedPosition& simulated_;
  const size_t number_;
  const PositionExplainer explainer_;
  std::map<std::string, size_t> task_numbers_;
  std::map<const plan::Buffer*, size_t> buffer_numbers_;
  std::map<std::string, size_t> buffer_names_;
};

json plan_json(const plan::Plan& plan, const Hardware& hardware, const Simulation& simulation) {
  const KernelClock clock(hardware, hardware.units_of_rank(RankLayout(plan, hardware).size()));
  json links = json::array();
  for (const SimulatedLink& link : simulation.links) {
    links.push_back({link.communicator, link.from, link.to, link.messages, link.host_bytes,
                     link.network_bytes, link.seconds});
  }
  json positions = json::array();
  for (size_t p = 0; p < plan.positions.size(); ++p) {
    positions.push_back(PositionWriter(plan, p, simulation, clock).run());
  }
  return {{"model", plan.model},
          {"target", plan.target},
          {"mesh", mesh_text(plan)},
          {"machine", machine_text(hardware)},
          {"micro_batches", plan.micro_batches},
          {"rows", plan.micro_batch_rows},
          {"ranks", simulation.ranks},
          {"seconds", simulation.seconds},
          {"bubble", simulation.bubble},
          {"overlap", simulation.overlap_ratio},
          {"links", std::move(links)},
          {"positions", std::move(positions)}};
}

}  // namespace

std::string page_html(const std::vector<plan::Plan>& plans, const Hardware& hardware,
                      const std::vector<Simulation>& simulations) {
  json data = json::array();
  for (size_t i = 0; i < plans.size(); ++i) {
    data.push_back(plan_json(plans[i], hardware, simulations[i]));
  }
  std::string page(sgtc_page_html_begin, sgtc_page_html_end);
  const auto put = [&](const std::string& mark, const std::string& text) {
    page.replace(page.find(mark), mark.size(), text);
  };
  put("/*STYLE*/", std::string(sgtc_page_css_begin, sgtc_page_css_end));
  put("/*SCRIPT*/", std::string(sgtc_page_charts_begin, sgtc_page_charts_end) +
                        std::string(sgtc_page_js_begin, sgtc_page_js_end));
  put("/*DATA*/", script_text(data));
  return page;
}

}  // namespace sgtc
