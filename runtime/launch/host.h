// The machine that this process runs on.
#pragma once

#include <string>

namespace sgtc::runtime {

/// Its name, for people.
std::string host_name();

/// Equal for two processes only if they share a network and shared memory: names lie in containers,
/// so this also has the kernel's boot, the network namespace and the file system of /dev/shm.
std::string host_identity();

}  // namespace sgtc::runtime
