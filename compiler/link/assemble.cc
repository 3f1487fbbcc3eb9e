#include "link/assemble.h"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "support/diagnostics.h"

namespace sgtc {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

std::unique_ptr<llvm::TargetMachine> make_assembler() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  SGTC_CHECK(target != nullptr, error);
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, "x86-64", "", {}, llvm::Reloc::Static));
}

}  // namespace

std::string assemble(const std::string& text) {
  std::unique_ptr<llvm::TargetMachine> machine = make_assembler();
  llvm::LLVMContext context;
  llvm::Module module("data", context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  module.setModuleInlineAsm(text);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const bool failed =
      machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile);
  SGTC_CHECK(!failed, "the x86-64 target emits no object files");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace sgtc
