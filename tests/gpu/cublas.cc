#include "gpu/cublas.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace sgtc::testing {

// Own declarations of what is used of cuBLAS.
struct Cublas::Functions {
  int (*cublasCreate_v2)(void**);
  int (*cublasGemmEx)(void*, int, int, int, int, int, const void*, const void*, int, int,
                      const void*, int, int, const void*, void*, int, int, int, int);
};

namespace {

constexpr int kBFloat16 = 14, kComputeFloat = 68, kDefaultAlgorithm = -1;

void check(int status, const char* call) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: cuBLAS status %d\n", call, status);
  std::exit(1);
}

}  // namespace

Cublas::Cublas(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(1);
  }
  static Functions functions;
  functions.cublasCreate_v2 = reinterpret_cast<int (*)(void**)>(dlsym(library, "cublasCreate_v2"));
  functions.cublasGemmEx =
      reinterpret_cast<decltype(functions.cublasGemmEx)>(dlsym(library, "cublasGemmEx"));
  functions_ = &functions;
  check(functions_->cublasCreate_v2(&handle_), "cublasCreate");
}

// cuBLAS is column-major: it computes the transposed product.
void Cublas::start(MatmulProblem& problem) const {
  const MatmulSizes& s = problem.sizes();
  const Operand &a = problem.a(), &b = problem.b();
  const float one = 1, zero = 0;
  check(functions_->cublasGemmEx(
            handle_, b.line_major ? 0 : 1, a.line_major ? 1 : 0, static_cast<int>(s.columns),
            static_cast<int>(s.rows), static_cast<int>(s.depth), &one,
            reinterpret_cast<const void*>(problem.b_address()), kBFloat16,
            static_cast<int>(b.stride()), reinterpret_cast<const void*>(problem.a_address()),
            kBFloat16, static_cast<int>(a.stride()), &zero,
            reinterpret_cast<void*>(problem.result().address()), kBFloat16,
            static_cast<int>(problem.stride()), kComputeFloat, kDefaultAlgorithm),
        "cublasGemmEx");
}

}  // namespace sgtc::testing
