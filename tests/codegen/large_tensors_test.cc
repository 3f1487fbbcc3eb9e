// Kernels of tensors with more than 2^31 elements. The memory is reserved and not filled, and only
// the blocks at the end run, so that few pages of it come to exist.
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/compile.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

// Zeros that take memory where they are written.
class Reserved {
 public:
  explicit Reserved(int64_t bytes)
      : size_(static_cast<size_t>(bytes)),
        data_(mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  ~Reserved() { munmap(data_, size_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  size_t size_;
  void* data_;
};

// The only kernel of a graph.
class Kernel {
 public:
  explicit Kernel(const std::string& text) : graph_(parse_graph(text)) {
    const std::vector<Group> groups = fuse(graph_);
    REQUIRE(groups.size() == 1);
    spec_ = form_kernel(graph_, groups[0]);
    CompileOptions options;
    options.target = make_target("native");
    const CompiledKernel compiled = compile_kernels({spec_}, options).front();
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    llvm::cantFail(jit_->addObjectFile(
        llvm::MemoryBuffer::getMemBufferCopy(compiled.object, compiled.symbol)));
    function_ = llvm::cantFail(jit_->lookup(compiled.symbol)).toPtr<Function>();
  }

  int64_t blocks() const { return spec_.blocks; }

  // Runs the last `count` blocks; `memory` is by the names of values.
  void run_last(int64_t count, const std::map<std::string, void*>& memory) {
    std::vector<void*> arguments;
    for (const KernelArgument& argument : spec_.arguments) {
      arguments.push_back(argument.kind == KernelArgument::Kind::kStatus
                              ? static_cast<void*>(status_.data())
                              : memory.at(graph_.value(argument.value).name));
    }
    function_(arguments.data(), std::max<int64_t>(0, spec_.blocks - count), spec_.blocks, 0);
  }

 private:
  using Function = void (*)(void* const*, int64_t, int64_t, int64_t);

  Graph graph_;
  KernelSpec spec_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Function function_ = nullptr;
  std::vector<int64_t> status_ = std::vector<int64_t>(8, 0);
};

constexpr int64_t kMany = (int64_t{1} << 32) + 40;

}  // namespace

TEST_CASE("an elementwise loop reaches elements beyond 2^32") {
  Kernel kernel("feed %x: f32[4294967336]\n%y = neg(%x)\noutput \"y\" %y");
  const Reserved x(kMany * 4), y(kMany * 4);
  x.as<float>()[kMany - 1] = 3;
  REQUIRE(kernel.blocks() > 1000);
  kernel.run_last(1, {{"x", x.as<void>()}, {"y", y.as<void>()}});
  CHECK(y.as<float>()[kMany - 1] == -3);
}

TEST_CASE("a gather reaches rows beyond 2^32 elements") {
  Kernel kernel(
      "feed %x: f32[536870920,8]\nfeed %i: i64[1]\n%y = gather(%x, %i) {axis=0}\n"
      "output \"y\" %y");
  const Reserved x(int64_t{536870920} * 8 * 4);
  const int64_t row = 536870919;
  x.as<float>()[row * 8 + 7] = 5;
  std::vector<float> y(64);
  int64_t index = row;
  kernel.run_last(kernel.blocks(), {{"x", x.as<void>()}, {"i", &index}, {"y", y.data()}});
  CHECK(y[7] == 5);
}

TEST_CASE("a product reaches rows beyond 2^32 elements") {
  Kernel kernel(
      "feed %x: f32[536870920,8]\nfeed %w: f32[8,1]\n"
      "%y = matmul(%x, %w) {transpose_a=0, transpose_b=0}\noutput \"y\" %y");
  const int64_t rows = 536870920;
  const Reserved x(rows * 8 * 4), y(rows * 4);
  x.as<float>()[rows * 8 - 1] = 5;
  std::vector<float> w(64, 2);
  REQUIRE(kernel.blocks() > 1000);
  kernel.run_last(1, {{"x", x.as<void>()}, {"w", w.data()}, {"y", y.as<void>()}});
  CHECK(y.as<float>()[rows - 1] == 10);
}
