#include "plan/schedule_chart.h"

#include <algorithm>
#include <map>
#include <set>

namespace sgtc {
namespace {

constexpr size_t kWidth = 84;

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// The longest prefix decides, so backward_input comes before backward.
std::string letter_of(const std::string& task) {
  static const std::vector<std::pair<std::string, std::string>> kLetters = {
      {"forward", "F"}, {"backward_input", "I"}, {"backward_weight", "W"}, {"backward", "B"},
      {"update", "U"},  {"prologue", "P"},       {"evaluate", "E"},        {"setup", "S"}};
  for (const auto& [prefix, letter] : kLetters) {
    if (starts_with(task, prefix)) return letter;
  }
  return task;
}

std::string communication_label(const plan::Task& task) {
  const size_t underscore = task.name.find('_');
  const std::string rest =
      underscore == std::string::npos ? task.name : task.name.substr(underscore + 1);
  if (task.kind == "send") return ">" + rest;
  if (task.kind == "receive") return "<" + rest;
  return "+" + rest;
}

std::string label_of(const plan::Position& position, const plan::Task& task,
                     const plan::Entry& entry) {
  const std::string micro_batch = std::to_string(entry.micro_batch);
  if (task.kind != "compute") return communication_label(task) + "." + micro_batch;
  const std::string letter = letter_of(task.name);
  if (letter == "U" || letter == "S") return letter;
  if (position.stages.size() < 2) return letter + micro_batch;
  return letter + std::to_string(task.stage) + "." + micro_batch;
}

}  // namespace

std::string schedule_chart(const plan::Position& position,
                           const std::vector<plan::Entry>& entries) {
  std::map<std::string, const plan::Task*> tasks;
  for (const plan::Task& task : position.tasks) tasks[task.name] = &task;
  std::set<int64_t> streams;
  std::vector<std::string> labels;
  for (const plan::Entry& entry : entries) {
    streams.insert(entry.stream);
    labels.push_back(label_of(position, *tasks.at(entry.task), entry));
  }
  std::string text;
  for (size_t begin = 0; begin < entries.size();) {
    size_t end = begin;
    for (size_t width = 0; end < entries.size() && (end == begin || width < kWidth); ++end) {
      width += labels[end].size() + 1;
    }
    for (const int64_t stream : streams) {
      std::string row = "    stream " + std::to_string(stream) + " |";
      for (size_t e = begin; e < end; ++e) {
        const bool here = entries[e].stream == stream;
        row += " " + (here ? labels[e] : std::string(labels[e].size(), ' '));
      }
      row.erase(row.find_last_not_of(' ') + 1);
      text += row + "\n";
    }
    begin = end;
  }
  return text;
}

}  // namespace sgtc
