#include "runtime/launch/stall.h"

#include <cstdio>
#include <sstream>
#include <string>

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

using States = std::vector<StallDetector::State>;

// "5d 5d:reduce 6w 6h": step 5 on the device, likewise in a communication, done with step 6 and
// waiting for the others, at work on the host in step 6.
States states_of(const std::string& text) {
  States states;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    size_t end = 0;
    StallDetector::State& state = states.emplace_back();
    state.activity.step = std::stoll(word, &end);
    state.activity.turns = 2 * state.activity.step + (word[end] == 'd' ? 1 : 0);
    state.waits_for_others = word[end] == 'w';
    const size_t colon = word.find(':');
    if (colon != std::string::npos) {
      std::snprintf(state.activity.entry, sizeof state.activity.entry, "%s",
                    word.c_str() + colon + 1);
    }
  }
  return states;
}

// When the job is found to be stalled, if it stays as the last text says: milliseconds after that
// began, -1 for never within ten minutes. Before, each text holds for `milliseconds`.
int64_t stalls_after(const std::vector<std::string>& texts, int64_t milliseconds,
                     double expected = 0) {
  StallDetector detector(5000);
  detector.expect(expected);
  int64_t now = 1000000;
  for (size_t i = 0; i + 1 < texts.size(); ++i) {
    for (const int64_t end = now + milliseconds; now < end; now += 100) {
      if (detector.look(states_of(texts[i]), now, false)) return -2;
    }
  }
  const int64_t begin = now;
  for (; now < begin + 600000; now += 100) {
    if (detector.look(states_of(texts.back()), now, false)) return now - begin;
  }
  return -1;
}

// Steps of two ranks that follow each other, and then what they stay in.
std::vector<std::string> steps_and(const std::string& last) {
  std::vector<std::string> texts;
  for (int step = 1; step <= 9; ++step) {
    const std::string number = std::to_string(step);
    texts.push_back(number + "d " + number + "d");
  }
  texts.push_back(last);
  return texts;
}

}  // namespace

TEST_CASE("ranks that wait for each other are stalled") {
  CHECK(stalls_after(steps_and("10d 11d"), 300) == 5100);
  CHECK(stalls_after(steps_and("10d:reduce 10d:reduce_1"), 300) == 5100);
  CHECK(stalls_after(steps_and("10d 10w"), 300) == 5100);
}

TEST_CASE("a stall is several times as long as anything before") {
  CHECK(stalls_after(steps_and("10d 11d"), 2000) == 20100);
  CHECK(stalls_after(steps_and("10d 11d"), 30000) == 300100);
}

TEST_CASE("a rank that works on the host can be waited for") {
  CHECK(stalls_after(steps_and("10d 10h"), 300) == -1);
  CHECK(stalls_after(steps_and("10h 10h"), 300) == -1);
}

TEST_CASE("what the host does is no measure of steps") {
  std::vector<std::string> texts = steps_and("12d 12d");
  texts.insert(texts.end() - 1, {"10d 9h", "10d 9h", "10d 9h", "10d 10d", "11d 11d"});
  CHECK(stalls_after(texts, 300) == 5100);
}

TEST_CASE("the first steps are held against what the plan predicts") {
  CHECK(stalls_after({"0d 0d"}, 0, 60) == 6100);
  CHECK(stalls_after({"1d 1d", "2d 2d", "3d 3d"}, 300, 60) == 6100);
  CHECK(stalls_after({"1d 1d", "2d 2d", "3d 3d"}, 300, 1) == 5100);
  CHECK(stalls_after({"1d 1d", "2d 2d", "3d 3h"}, 300, 1) == -1);
  CHECK(stalls_after(steps_and("10d 10d"), 6000, 1) == -2);  // a step of 6 s for one of 1 ms
  CHECK(stalls_after(steps_and("10d 10d"), 300, 2000) == 5100);
}

TEST_CASE("the first steps take any time without a prediction") {
  CHECK(stalls_after({"0d 0d"}, 0) == -1);
  CHECK(stalls_after({"1d 1d", "2d 2d", "3d 3d"}, 300) == -1);
  const std::vector<std::string> all = steps_and("10d 10d");
  CHECK(stalls_after({all.begin(), all.begin() + 6}, 300) == -1);
  CHECK(stalls_after({all.begin(), all.begin() + 7}, 300) == 5100);
}

TEST_CASE("a pause of this process is no stall") {
  StallDetector detector(5000);
  int64_t now = 0;
  for (const std::string& text : steps_and("10d 10d")) {
    CHECK_FALSE(detector.look(states_of(text), now += 100, false));
  }
  CHECK_FALSE(detector.look(states_of("10d 10d"), now += 100000, true));
  CHECK_FALSE(detector.look(states_of("10d 10d"), now += 4900, false));
  CHECK(detector.look(states_of("10d 10d"), now += 200, false));
  CHECK(detector.duration() == 5100);
}

TEST_CASE("what stalled ranks do is told, rare things first") {
  const std::vector<std::string> names = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)", "rank 3 (d)"};
  CHECK(describe_all(states_of("11d 12d 11d 11d"), names) ==
        "rank 1 (b) is in step 12; ranks 0, 2 and 3 are in step 11");
  CHECK(describe_all(states_of("11d:reduce 11w"), names) ==
        "rank 1 (b) waits for others, last in step 11; rank 0 (a) is in step 11, reduce of "
        "micro-batch 0");
}

}  // namespace sgtc::runtime
