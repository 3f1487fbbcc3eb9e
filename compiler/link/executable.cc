#include "link/executable.h"

#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "link/assemble.h"
#include "runtime_blob.h"
#include "support/diagnostics.h"
#include "support/version.h"

LLD_HAS_DRIVER(elf)

namespace sgtc {
namespace {

namespace fs = std::filesystem;

/// A folder for the linker's inputs, removed at the end.
class Workspace {
 public:
  Workspace() {
    std::string pattern = (fs::temp_directory_path() / "sgtc-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw Error(pattern + ": cannot make a temporary folder: " + std::strerror(errno) +
                  "; set TMPDIR to a writable folder");
    }
    folder_ = pattern;
  }
  ~Workspace() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const char* data, size_t size) const {
    std::ofstream file(path(name), std::ios::binary);
    file.write(data, static_cast<std::streamsize>(size));
    file.close();
    if (!file) throw Error(path(name) + ": cannot write: is the temporary folder full?");
    return path(name);
  }

 private:
  fs::path folder_;
};

/// A file of the C library on this machine.
std::string system_library(const std::string& name) {
  constexpr std::array<const char*, 5> kFolders = {
      "/lib/x86_64-linux-gnu", "/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"};
  for (const char* folder : kFolders) {
    const fs::path path = fs::path(folder) / name;
    if (fs::exists(path)) return path.string();
  }
  throw Error(name +
              ": not found in /lib/x86_64-linux-gnu, /lib64 or /usr/lib; sgtc links its "
              "output with the C library (glibc) of this machine");
}

void write_weights(const WeightsBlob& weights, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const WeightsBlob::Segment& segment : weights.segments()) {
    file.seekp(segment.offset);
    const auto bytes = segment.literal->bytes();
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  file.close();
  if (!file) throw Error(path + ": cannot write: is the file system full?");
  fs::resize_file(path, static_cast<uintmax_t>(weights.size()));
}

std::string bytes_symbol(const std::string& symbol, const std::string& file, int alignment) {
  return ".balign " + std::to_string(alignment) + "\n.globl " + symbol + "_begin, " + symbol +
         "_end\n" + symbol + "_begin:\n" + (file.empty() ? "" : ".incbin \"" + file + "\"\n") +
         symbol + "_end:\n.byte 0\n";
}

std::string text_symbol(const std::string& symbol, const std::string& text) {
  return ".globl " + symbol + "\n" + symbol + ":\n.asciz \"" + text + "\"\n";
}

std::string kernel_table(const std::vector<std::string>& symbols) {
  std::string names, entries;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const std::string label = ".Lname" + std::to_string(i);
    names += label + ":\n.asciz \"" + symbols[i] + "\"\n";
    entries += ".quad " + label + ", " + symbols[i] + "\n";
  }
  return names + ".balign 8\n.globl sgtc_kernels\nsgtc_kernels:\n" + entries +
         ".globl sgtc_kernel_count\nsgtc_kernel_count:\n.quad " + std::to_string(symbols.size()) +
         "\n";
}

/// One part of a GPU image as a file in the workspace, with a zero at its end; empty: none.
std::string incbin(const std::string& label, const std::string& file) {
  if (file.empty()) return "";
  return ".balign 64\n" + label + ":\n.incbin \"" + file + "\"\n.byte 0\n";
}

/// The bytes of GPU images and the table of them, .Lgpu_images.
std::string gpu_images(const Workspace& work, const std::vector<GpuImage>& images) {
  std::string data, entries;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    const std::string label = ".L" + name;
    if (!bytes.empty()) data += incbin(label, work.write(name, bytes.data(), bytes.size()));
    entries += ".quad " + (bytes.empty() ? "0" : label) + "\n";
  };
  for (size_t i = 0; i < images.size(); ++i) {
    SGTC_CHECK(!images[i].cubin.empty() || !images[i].ptx.empty(), "a GPU image is empty");
    add("cubin" + std::to_string(i), images[i].cubin);
    add("ptx" + std::to_string(i), images[i].ptx);
  }
  return data + ".balign 8\n.Lgpu_images:\n" + entries;
}

std::string gpu_kernel_table(const std::vector<GpuKernel>& kernels) {
  constexpr size_t kImageBytes = 16;  // of an entry of .Lgpu_images
  std::string names, entries;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string label = ".Lgpu_name" + std::to_string(i);
    names += label + ":\n.asciz \"" + kernels[i].symbol + "\"\n";
    entries += ".quad " + label + ", .Lgpu_images+" +
               std::to_string(kernels[i].image * kImageBytes) + "\n";
  }
  return names + ".balign 8\n.globl sgtc_gpu_kernels\nsgtc_gpu_kernels:\n" + entries +
         ".globl sgtc_gpu_kernel_count\nsgtc_gpu_kernel_count:\n.quad " +
         std::to_string(kernels.size()) + "\n";
}

/// What runtime/program.h declares.
std::string data_assembly(const Workspace& work, const ExecutableInput& input,
                          const std::string& plans_file, const std::string& weights_file,
                          const std::string& side_file) {
  return ".section .rodata\n" + bytes_symbol("sgtc_plans", plans_file, 16) +
         bytes_symbol("sgtc_weights", weights_file, 64) + kernel_table(input.symbols) +
         gpu_images(work, input.gpu_images) + gpu_kernel_table(input.gpu_kernels) +
         text_symbol("sgtc_fingerprint", input.fingerprint) +
         text_symbol("sgtc_side_file", side_file) + text_symbol("sgtc_version", kVersion) +
         ".section .note.GNU-stack,\"\",@progbits\n";
}

std::string write_blob(const Workspace& work, const std::string& name, const char* begin,
                       const char* end) {
  return work.write(name, begin, static_cast<size_t>(end - begin));
}

void run_linker(const Workspace& work, const std::vector<std::string>& objects,
                const std::string& output) {
  std::vector<std::string> words = {
      "ld.lld",
      "--build-id=none",
      "--gc-sections",
      "--as-needed",
      "-O1",
      "--threads=2",
      "-z",
      "relro",
      "-z",
      "noexecstack",
      "--hash-style=gnu",
      "--eh-frame-hdr",
      "-dynamic-linker",
      "/lib64/ld-linux-x86-64.so.2",
      "-o",
      output,
      write_blob(work, "crt1.o", sgtc_crt1_begin, sgtc_crt1_end),
      write_blob(work, "crti.o", sgtc_crti_begin, sgtc_crti_end),
      write_blob(work, "crtbegin.o", sgtc_crtbegin_begin, sgtc_crtbegin_end),
      write_blob(work, "runtime.o", sgtc_runtime_begin, sgtc_runtime_end)};
  words.insert(words.end(), objects.begin(), objects.end());
  for (const char* library : {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}) {
    words.push_back(system_library(library));
  }
  words.push_back(write_blob(work, "crtend.o", sgtc_crtend_begin, sgtc_crtend_end));
  words.push_back(write_blob(work, "crtn.o", sgtc_crtn_begin, sgtc_crtn_end));
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const bool linked = lld::elf::link(arguments, stream, stream, false, false);
  lld::CommonLinkerContext::destroy();
  SGTC_CHECK(linked, "linking failed: " + messages);
}

/// Moves `from` to `to`, over file systems too, so that `to` appears whole or not at all.
void publish(const std::string& from, const std::string& to) {
  const std::string partial = to + ".partial-" + std::to_string(getpid());
  std::error_code error;
  fs::copy_file(from, partial, fs::copy_options::overwrite_existing, error);
  if (!error) fs::rename(partial, to, error);
  if (error) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw Error(to + ": cannot write the output: " + error.message() +
                "; choose another path with -o");
  }
}

}  // namespace

void write_executable(const ExecutableInput& input, const std::string& path) {
  const Workspace work;
  const bool beside = input.weights.size() > input.embedded_weights_limit;
  const std::string side_file = beside ? fs::path(path).filename().string() + ".weights" : "";
  std::string weights_file;
  if (input.weights.size() > 0) {
    weights_file = work.path("weights.bin");
    write_weights(input.weights, weights_file);
  }
  const std::string plans =
      work.write("plans.json", input.plans_json.data(), input.plans_json.size());
  const std::string data =
      assemble(data_assembly(work, input, plans, beside ? "" : weights_file, side_file));
  std::vector<std::string> objects = {work.write("data.o", data.data(), data.size())};
  for (size_t i = 0; i < input.objects.size(); ++i) {
    objects.push_back(work.write("kernels" + std::to_string(i) + ".o", input.objects[i].data(),
                                 input.objects[i].size()));
  }
  const std::string output = work.path("output");
  run_linker(work, objects, output);
  chmod(output.c_str(), 0755);
  if (beside) publish(weights_file, path + ".weights");
  publish(output, path);
}

}  // namespace sgtc
