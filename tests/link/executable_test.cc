#include "link/executable.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "link/assemble.h"
#include "plan/format.h"
#include "support/catch.h"
#include "support/diagnostics.h"

namespace sgtc {
namespace {

namespace fs = std::filesystem;

/// A program with one kernel that does nothing; its plans are no plans, so it ends with a message.
ExecutableInput small_program() {
  ExecutableInput input;
  input.plans_json = "[]";
  input.weights.add(scalar_literal(DType::kFloat32, 1.5));
  input.objects = {assemble(".text\n.globl k_nothing\nk_nothing:\nret\n")};
  input.symbols = {"k_nothing"};
  input.fingerprint = std::string(64, '0');
  return input;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// One step that calls one kernel without arguments.
plan::Plan gpu_plan(const std::string& symbol) {
  plan::Plan plan;
  plan.target = "sm_90a";
  plan.mesh = {{"pp", 1}, {"dp", 1}, {"tp", 1}};
  plan.kernels.resize(1);
  plan.kernels[0].symbol = symbol;
  plan.kernels[0].launch.threads = 128;
  plan::Position& position = plan.positions.emplace_back();
  position.tasks.resize(1);
  position.tasks[0].name = "step";
  position.tasks[0].kind = "compute";
  position.tasks[0].calls.resize(1);
  position.tasks[0].calls[0].kernel = symbol;
  position.schedules["train"].resize(1);
  position.schedules["train"][0].task = "step";
  return plan;
}

/// A folder that is removed at the end of the test.
struct Folder {
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  fs::path path = fs::temp_directory_path() / "sgtc_link_test";
};

TEST_CASE("an executable is the same wherever it is written") {
  const Folder folder;
  write_executable(small_program(), folder.path / "one");
  write_executable(small_program(), folder.path / "two");
  CHECK(contents(folder.path / "one") == contents(folder.path / "two"));
  CHECK((fs::status(folder.path / "one").permissions() & fs::perms::owner_exec) != fs::perms::none);
}

TEST_CASE("weights above the limit go to a side file that is named in the program") {
  const Folder folder;
  ExecutableInput input = small_program();
  input.embedded_weights_limit = 0;
  write_executable(input, folder.path / "big");
  CHECK(fs::file_size(folder.path / "big.weights") == WeightsBlob::kAlignment);
  CHECK(contents(folder.path / "big").find("big.weights") != std::string::npos);
  float first = 0;
  std::ifstream(folder.path / "big.weights", std::ios::binary)
      .read(reinterpret_cast<char*>(&first), sizeof first);
  CHECK(first == 1.5f);
}

TEST_CASE("kernels for GPUs are embedded with a zero behind their code") {
  const Folder folder;
  ExecutableInput input = small_program();
  input.gpu_images = {{"", ".version 8.0"}, {"cubin bytes", ".version 8.1"}};
  input.gpu_kernels = {{"k_first", 0}, {"k_second", 1}};
  write_executable(input, folder.path / "gpu");
  const std::string program = contents(folder.path / "gpu");
  for (const char* text : {".version 8.0", ".version 8.1", "cubin bytes", "k_first", "k_second"}) {
    CHECK(program.find(std::string(text) + '\0') != std::string::npos);
  }
}

TEST_CASE("a program for GPUs hands the driver the image of each kernel") {
  const Folder folder;
  ExecutableInput input = small_program();
  input.plans_json = nlohmann::json::array({gpu_plan("k_second")}).dump();
  input.gpu_images = {{"", ".version 8.0\n"}, {"", ".version 8.1\n"}};
  input.gpu_kernels = {{"k_first", 0}, {"k_second", 1}};
  const std::string program = folder.path / "gpu";
  write_executable(input, program);
  const std::string command = "SGTC_CUDA_LIBRARY=" SGTC_CUDA_STUB
                              " SGTC_STUB_FAIL='load ptx=222' " +
                              program + " --steps 1 2> " + program + ".errors";
  CHECK(std::system(command.c_str()) != 0);
  const std::string errors = contents(program + ".errors");
  INFO(errors);
  CHECK(errors.find("cannot compile the program's PTX of version 8.1: ") != std::string::npos);
}

TEST_CASE("an output that cannot be written is an error and leaves nothing") {
  const Folder folder;
  const std::string path = (folder.path / "missing" / "train").string();
  try {
    write_executable(small_program(), path);
    FAIL("it was written");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find(path + ": cannot write the output") == 0);
  }
  CHECK(fs::is_empty(folder.path));
}

}  // namespace
}  // namespace sgtc
