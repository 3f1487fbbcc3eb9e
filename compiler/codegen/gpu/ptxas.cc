#include "codegen/gpu/ptxas.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "support/diagnostics.h"

extern char** environ;

namespace sgtc::gpu {
namespace {

namespace fs = std::filesystem;

/// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    std::string pattern = fs::temp_directory_path(error) / "sgtc-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Error(pattern + ": cannot make a folder for the GPU's assembler; set TMPDIR");
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Both streams of the program go to the file `log`. True if it ended with status 0.
bool run(std::vector<std::string> command, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failure =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw Error(command[0] + ": cannot be started");
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string find_ptxas() {
  std::vector<std::string> folders;
  const char* path = std::getenv("PATH");
  std::stringstream list(path == nullptr ? "" : path);
  for (std::string folder; std::getline(list, folder, ':');) folders.push_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  for (const std::string& folder : folders) {
    const std::string file = folder + "/ptxas";
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

Assembled assemble_ptx(const std::string& ptxas, const std::string& ptx,
                       const std::string& target) {
  const TemporaryFolder folder;
  const std::string source = folder.file("kernel.ptx"), cubin = folder.file("kernel.cubin");
  const std::string log = folder.file("report");
  std::ofstream stream(source, std::ios::binary);
  stream << ptx;
  stream.close();
  if (!stream) throw Error(source + ": cannot write the GPU's assembly; free some space");
  // Instructions of the text are never contracted: the text says what is.
  bool done = run({ptxas, "-arch=" + target, "--fmad=false", "-v", source, "-o", cubin}, log);
  Assembled result{read_file(cubin), read_file(log)};
  if (!done || result.cubin.empty()) throw Error(ptxas + " failed: " + result.report);
  return result;
}

bool serializes_products(const std::string& report) {
  return report.find("(C75") != std::string::npos;
}

}  // namespace sgtc::gpu
