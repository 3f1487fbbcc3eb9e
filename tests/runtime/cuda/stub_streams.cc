#include "runtime/cuda/stub_streams.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace sgtc::runtime::cuda {

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void log(const std::string& line) {
  const char* path = std::getenv("SGTC_STUB_LOG");
  if (!path) return;
  const char* rank = std::getenv("SGTC_RANK");
  const std::string own = rank ? std::string(path) + "." + rank : path;
  std::FILE* file = std::fopen(own.c_str(), "ae");
  if (!file) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

int scripted(const std::string& name) {
  static std::mutex mutex;  // a thread of the program asks for asynchronous errors
  static std::map<std::string, int> calls;
  const std::lock_guard<std::mutex> lock(mutex);
  const int call = ++calls[name];
  const char* text = std::getenv("SGTC_STUB_FAIL");
  if (!text || std::strncmp(text, (name + "=").c_str(), name.size() + 1) != 0) return kSuccess;
  const char* from = std::strchr(text, '@');
  return call >= (from ? std::atoi(from + 1) : 1) ? std::atoi(text + name.size() + 1) : kSuccess;
}

void put(Stream stream, const std::string& name, StubWork work) {
  if (!stream->captured) return stream->work.push_back(std::move(work));
  std::deque<GraphNodeObject>& nodes = stream->captured->nodes;
  nodes.push_back({nodes.size(), name, std::move(work)});
}

}  // namespace sgtc::runtime::cuda
