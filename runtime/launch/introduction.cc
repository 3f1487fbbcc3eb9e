#include "launch/introduction.h"

#include "launch/connection.h"

namespace sgtc::runtime {
namespace {

constexpr size_t kShownDigits = 12;

std::string value_in(const Agreement& agreement, const std::string& name) {
  for (const auto& [other, value] : agreement) {
    if (other == name) return "'" + value + "'";
  }
  return "nothing";
}

void append_difference(std::string& text, const std::string& name, const std::string& found,
                       const std::string& expected) {
  text += (text.empty() ? "" : ", ") + name + " is " + found + ", on rank 0 " + expected;
}

std::string differences(const Agreement& zero, const Agreement& other) {
  std::string text;
  for (const auto& [name, value] : zero) {
    const std::string found = value_in(other, name);
    const std::string expected = "'" + value + "'";
    if (found != expected) append_difference(text, name, found, expected);
  }
  for (const auto& [name, value] : other) {
    const std::string expected = value_in(zero, name);
    if (expected == "nothing") append_difference(text, name, "'" + value + "'", expected);
  }
  return text;
}

}  // namespace

std::string name_of(const Introduction& introduction) {
  return "rank " + std::to_string(introduction.rank) + " (host " + introduction.host +
         ", process " + std::to_string(introduction.pid) + ")";
}

std::string encode(const Introduction& introduction) {
  Writer writer;
  writer.integer(introduction.rank).integer(introduction.size).integer(introduction.pid);
  writer.text(introduction.host).text(introduction.identity).text(introduction.cpus);
  writer.text(introduction.fingerprint);
  writer.integer(static_cast<int64_t>(introduction.agreement.size()));
  for (const auto& [name, value] : introduction.agreement) writer.text(name).text(value);
  return writer.body();
}

bool decode(std::string_view text, Introduction& introduction) {
  Reader reader(text);
  introduction = {};
  introduction.rank = reader.integer();
  introduction.size = reader.integer();
  introduction.pid = reader.integer();
  introduction.host = reader.text();
  introduction.identity = reader.text();
  introduction.cpus = reader.text();
  introduction.fingerprint = reader.text();
  for (int64_t left = reader.integer(); left > 0 && reader.ok(); --left) {
    const std::string name(reader.text());
    introduction.agreement.emplace_back(name, reader.text());
  }
  return reader.complete();
}

MaybeFailure compare_with_rank_0(const Introduction& zero, const Introduction& other) {
  if (zero.size != other.size) {
    return Failure{name_of(other),
                   "belongs to a job of " + std::to_string(other.size) +
                       " ranks, rank 0 to one of " + std::to_string(zero.size),
                   "start all ranks with the same number of ranks"};
  }
  if (zero.fingerprint != other.fingerprint) {
    return Failure{name_of(other),
                   "runs program " + other.fingerprint.substr(0, kShownDigits) + ", rank 0 runs " +
                       zero.fingerprint.substr(0, kShownDigits),
                   "start the same executable on all hosts"};
  }
  const std::string different = differences(zero.agreement, other.agreement);
  if (different.empty()) return {};
  return Failure{name_of(other), different, "give all ranks the same options"};
}

}  // namespace sgtc::runtime
