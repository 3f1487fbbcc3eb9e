// The plans of docs/plan-format, for tests.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "plan/json.h"

inline sgtc::plan::Plan load_plan(const std::string& name) {
  std::ifstream file(std::string(SGTC_SOURCE_DIR) + "/docs/plan-format/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return sgtc::parse_plan(text.str());
}
