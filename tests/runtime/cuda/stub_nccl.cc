// NCCL for tests: messages are files, work is done in the streams of the driver's stub.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/nccl_functions.h"
#include "runtime/cuda/stub_streams.h"

namespace sgtc::runtime::cuda {

struct NcclCommunicatorObject {
  std::string id;
  int size = 0;
  int member = 0;
  uint64_t polls = 0;             // that find it in progress
  std::map<int, uint64_t> sent;   // by receiver
  std::map<int, uint64_t> taken;  // by sender
};

namespace {

constexpr int kInvalidArgument = 4;
constexpr int kLaunchFailed = 719;

using Bytes = std::vector<char>;

// What one member does in one call: bytes for others, bytes from others, and what is done then.
struct Exchange {
  NcclCommunicator communicator = nullptr;
  std::string text;  // must be equal at both ends
  std::vector<std::pair<int, std::pair<const char*, size_t>>> sends;
  std::vector<std::pair<int, size_t>> receives;
  std::function<void(const std::map<int, Bytes>&)> finish;
};

std::string path_of(const Exchange& exchange, int from, int to, uint64_t number) {
  const char* folder = std::getenv("SGTC_STUB_FOLDER");
  return std::string(folder ? folder : "/tmp") + "/message-" + exchange.communicator->id + "-" +
         std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
}

void write_message(const std::string& path, const std::string& text, const char* data,
                   size_t bytes) {
  const std::string hidden = path + ".part";
  std::ofstream file(hidden, std::ios::binary);
  file << text << '\n';
  file.write(data, static_cast<std::streamsize>(bytes));
  file.close();
  std::rename(hidden.c_str(), path.c_str());
}

void wait_while(const std::string& path, bool exists) {
  while ((access(path.c_str(), F_OK) == 0) == exists) usleep(200);
}

// Empty if it is not what is expected.
Bytes take_message(const std::string& path, const std::string& text, size_t bytes) {
  wait_while(path, false);
  std::ifstream file(path, std::ios::binary);
  std::string found;
  std::getline(file, found);
  Bytes data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove(path.c_str());
  if (found == text && data.size() == bytes) return data;
  log("mismatch: " + text + " meets " + found);
  return {};
}

// A call is done when all its messages were taken.
int run(const std::vector<Exchange>& exchanges) {
  std::vector<std::string> written;
  for (const Exchange& each : exchanges) {
    for (const auto& [to, data] : each.sends) {
      written.push_back(
          path_of(each, each.communicator->member, to, each.communicator->sent[to]++));
      write_message(written.back(), each.text, data.first, data.second);
    }
  }
  for (const Exchange& each : exchanges) {
    std::map<int, Bytes> received;
    for (const auto& [from, bytes] : each.receives) {
      const uint64_t number = each.communicator->taken[from]++;
      received[from] =
          take_message(path_of(each, from, each.communicator->member, number), each.text, bytes);
      if (received[from].empty()) return kLaunchFailed;
    }
    each.finish(received);
  }
  for (const std::string& path : written) wait_while(path, true);
  return kSuccess;
}

// The calls between ncclGroupStart and ncclGroupEnd.
std::vector<Exchange> group;
std::string group_name;
Stream group_stream = nullptr;
bool in_group = false;

int add(const char* name, size_t count, int type, NcclCommunicator communicator, Stream stream,
        Exchange exchange) {
  const std::string text =
      std::string(name) + ":" + std::to_string(count) + ":" + std::to_string(type);
  STUB_ENTER(name, " " + std::to_string(count));
  if (!in_group) return kInvalidArgument;
  exchange.communicator = communicator;
  const bool transfer = text.rfind("ncclSend", 0) == 0 || text.rfind("ncclRecv", 0) == 0;
  exchange.text = transfer ? "transfer:" + std::to_string(count) : text;
  group.push_back(std::move(exchange));
  group_name += (group_name.empty() ? "" : "+") + std::string(name) + ":" + std::to_string(count);
  group_stream = stream;
  return kNcclInProgress;
}

size_t bytes_of(int type) {
  constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return kBytes[type];
}

template <typename T>
void accumulate(char* total, const char* more, size_t count, int reduction) {
  for (size_t i = 0; i < count; ++i) {
    T a;
    T b;
    std::memcpy(&a, total + i * sizeof(T), sizeof(T));
    std::memcpy(&b, more + i * sizeof(T), sizeof(T));
    a = reduction == kNcclMax ? std::max(a, b) : static_cast<T>(a + b);
    std::memcpy(total + i * sizeof(T), &a, sizeof(T));
  }
}

// In the order of the members. 16-bit floats are left as the first member has them.
Bytes reduced(std::map<int, Bytes> parts, size_t count, int type, int reduction) {
  Bytes total = std::move(parts.begin()->second);
  for (auto part = std::next(parts.begin()); part != parts.end(); ++part) {
    const char* more = part->second.data();
    if (type == kNcclFloat32) accumulate<float>(total.data(), more, count, reduction);
    if (type == kNcclFloat64) accumulate<double>(total.data(), more, count, reduction);
    if (type == kNcclInt32) accumulate<int32_t>(total.data(), more, count, reduction);
    if (type == kNcclInt64) accumulate<int64_t>(total.data(), more, count, reduction);
  }
  return total;
}

// To and from every other member: bytes [offset(other), …) of `from`.
Exchange with_all(NcclCommunicator c, const void* from, size_t bytes, size_t step) {
  Exchange exchange;
  for (int other = 0; other < c->size; ++other) {
    if (other == c->member) continue;
    const char* data = static_cast<const char*>(from) + static_cast<size_t>(other) * step;
    exchange.sends.push_back({other, {data, bytes}});
    exchange.receives.emplace_back(other, bytes);
  }
  return exchange;
}

Bytes copy(const void* from, size_t bytes) {
  const char* data = static_cast<const char*>(from);
  return {data, data + bytes};
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = static_cast<int>(number_from("SGTC_STUB_NCCL_VERSION", 22809));
  return kNcclSuccess;
}

int ncclGetUniqueId(NcclId* id) {
  STUB_ENTER("ncclGetUniqueId", "");
  static int made = 0;
  std::snprintf(id->bytes, sizeof id->bytes, "%d-%d", static_cast<int>(getpid()), made++);
  return kNcclSuccess;
}

const char* ncclGetErrorString(int) { return "scripted failure"; }

const char* ncclGetLastError(NcclCommunicator) { return "as the test wants"; }

int ncclCommInitRankConfig(NcclCommunicator* communicator, int size, NcclId id, int member,
                           NcclConfiguration* configuration) {
  STUB_ENTER("ncclCommInitRankConfig", " " + std::to_string(member) + " of " +
                                           std::to_string(size) + " blocks " +
                                           std::to_string(configuration->least_blocks) + " to " +
                                           std::to_string(configuration->most_blocks) +
                                           " cluster " + std::to_string(configuration->cluster) +
                                           " blocking " + std::to_string(configuration->blocking));
  *communicator = new NcclCommunicatorObject;
  (*communicator)->id = id.bytes;
  (*communicator)->size = size;
  (*communicator)->member = member;
  (*communicator)->polls = number_from("SGTC_STUB_POLLS", 1);
  return kNcclInProgress;
}

int ncclCommGetAsyncError(NcclCommunicator communicator, int* result) {
  *result = scripted("async");
  if (*result != kNcclSuccess || communicator->polls == 0) return kNcclSuccess;
  --communicator->polls;
  *result = kNcclInProgress;
  return kNcclSuccess;
}

int ncclCommRegister(NcclCommunicator, void*, size_t bytes, void**) {
  STUB_ENTER("ncclCommRegister", " " + std::to_string(bytes));
  return kNcclSuccess;
}

int ncclGroupStart() {
  STUB_ENTER("ncclGroupStart", "");
  in_group = true;
  return kNcclSuccess;
}

int ncclGroupEnd() {
  STUB_ENTER("ncclGroupEnd", "");
  in_group = false;
  if (group.empty()) return kNcclSuccess;
  for (const Exchange& each : group) each.communicator->polls = number_from("SGTC_STUB_POLLS", 1);
  const std::vector<Exchange> all = std::exchange(group, {});
  put(group_stream, std::exchange(group_name, ""), [all] {
    static uint64_t done = 0;
    if (++done == number_from("SGTC_STUB_SKIP", 0)) return kSuccess;
    const int result = scripted("communication");
    return result != kSuccess ? result : run(all);
  });
  return kNcclInProgress;
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int reduction,
                  NcclCommunicator c, Stream stream) {
  const size_t bytes = count * bytes_of(type);
  Exchange exchange = with_all(c, from, bytes, 0);
  exchange.finish = [=](std::map<int, Bytes> parts) {
    parts[c->member] = copy(from, bytes);
    std::memcpy(to, reduced(std::move(parts), count, type, reduction).data(), bytes);
  };
  return add("ncclAllReduce", count, type, c, stream, std::move(exchange));
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int reduction,
                      NcclCommunicator c, Stream stream) {
  const size_t bytes = count * bytes_of(type);
  Exchange exchange = with_all(c, from, bytes, bytes);
  exchange.finish = [=](std::map<int, Bytes> parts) {
    parts[c->member] =
        copy(static_cast<const char*>(from) + static_cast<size_t>(c->member) * bytes, bytes);
    std::memcpy(to, reduced(std::move(parts), count, type, reduction).data(), bytes);
  };
  return add("ncclReduceScatter", count, type, c, stream, std::move(exchange));
}

int ncclAllGather(const void* from, void* to, size_t count, int type, NcclCommunicator c,
                  Stream stream) {
  const size_t bytes = count * bytes_of(type);
  Exchange exchange = with_all(c, from, bytes, 0);
  exchange.finish = [=](std::map<int, Bytes> parts) {
    parts[c->member] = copy(from, bytes);
    for (const auto& [member, part] : parts) {
      std::memcpy(static_cast<char*>(to) + static_cast<size_t>(member) * bytes, part.data(), bytes);
    }
  };
  return add("ncclAllGather", count, type, c, stream, std::move(exchange));
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, NcclCommunicator c,
                  Stream stream) {
  const size_t bytes = count * bytes_of(type);
  Exchange exchange = with_all(c, from, bytes, 0);
  if (c->member != root) {
    exchange.sends.clear();
    exchange.receives = {{root, bytes}};
  } else {
    exchange.receives.clear();
  }
  exchange.finish = [=](const std::map<int, Bytes>& parts) {
    std::memmove(to, c->member == root ? from : parts.at(root).data(), bytes);
  };
  return add("ncclBroadcast", count, type, c, stream, std::move(exchange));
}

int ncclSend(const void* from, size_t count, int type, int peer, NcclCommunicator c,
             Stream stream) {
  Exchange exchange;
  exchange.sends.push_back({peer, {static_cast<const char*>(from), count * bytes_of(type)}});
  exchange.finish = [](const std::map<int, Bytes>&) {};
  return add("ncclSend", count, type, c, stream, std::move(exchange));
}

int ncclRecv(void* to, size_t count, int type, int peer, NcclCommunicator c, Stream stream) {
  const size_t bytes = count * bytes_of(type);
  Exchange exchange;
  exchange.receives = {{peer, bytes}};
  exchange.finish = [=](const std::map<int, Bytes>& parts) {
    std::memcpy(to, parts.at(peer).data(), bytes);
  };
  return add("ncclRecv", count, type, c, stream, std::move(exchange));
}

}  // extern "C"

}  // namespace sgtc::runtime::cuda
