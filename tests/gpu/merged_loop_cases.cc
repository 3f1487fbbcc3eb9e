// Loops of one form on tensors of many sizes: the update of an optimizer and a global norm.
#include "gpu/loop_cases.h"

namespace sgtc::testing {
namespace {

std::string n(int64_t value) { return std::to_string(value); }

const std::string kUpdate =
    "%g# = mul(%e#, %scale) @update\n%ma# = mul(%m#, %a) @update\n%gb# = mul(%g#, %b) @update\n"
    "%mm# = add(%ma#, %gb#) @update\n%vc# = mul(%v#, %c) @update\n%gg# = mul(%g#, %g#) @update\n"
    "%gd# = mul(%gg#, %d) @update\n%vv# = add(%vc#, %gd#) @update\n%av# = abs(%vv#) @update\n"
    "%root# = sqrt(%av#) @update\n%den# = add(%root#, %eps) @update\n"
    "%q# = div(%mm#, %den#) @update\n%wd# = mul(%w#, %decay) @update\n"
    "%sum# = add(%q#, %wd#) @update\n%move# = mul(%sum#, %rate) @update\n"
    "%x# = sub(%w#, %move#) @update\n";

// The text with the number of a tensor for each #.
std::string numbered(const std::string& text, const std::string& number) {
  std::string result;
  for (const char c : text) result += c == '#' ? number : std::string(1, c);
  return result;
}

// AdamW of a tensor per size, with gradients of `type`, one rate and one scale for all.
std::string updates(const std::vector<int64_t>& sizes, const std::string& type) {
  std::string text =
      "feed %rate: f32[]\nfeed %scale: f32[]\nconstant %a: f32[] = [0.9]\n"
      "constant %b: f32[] = [0.1]\nconstant %c: f32[] = [0.999]\nconstant %d: f32[] = [0.001]\n"
      "constant %eps: f32[] = [1e-8]\nconstant %decay: f32[] = [0.01]\n";
  std::string nodes;
  std::string tail;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string k = std::to_string(i);
    const std::string shape = "[" + n(sizes[i]) + "]";
    text += "feed %f" + k + ": " + type + shape + "\nstate parameter %w" + k + ": f32" + shape +
            " = fill(1)\nstate moment %m" + k + ": f32" + shape + " = zero\nstate moment %v" + k +
            ": f32" + shape + " = zero\n";
    const std::string widen = type == "f32" ? "abs(%f#)" : "cast(%f#) {to=\"f32\"}";
    nodes += numbered("%e# = " + widen + " @update\n" + kUpdate, k);
    tail += "update %w" + k + " = %x" + k + "\nupdate %m" + k + " = %mm" + k + "\nupdate %v" + k +
            " = %vv" + k + "\n";
  }
  return text + nodes + tail;
}

struct Rows {
  int64_t rows = 1;
  int64_t columns = 1;
};

// Sums of squares of the rows of a tensor per size.
std::string sums(const std::vector<Rows>& sizes, const std::string& type) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string k = std::to_string(i);
    text += "feed %f" + k + ": " + type + "[" + n(sizes[i].rows) + "," + n(sizes[i].columns) +
            "]\n%x" + k + " = cast(%f" + k + ") {to=\"" + (type == "f32" ? "f64" : "f32") +
            "\"} @update\n%q" + k + " = mul(%x" + k + ", %x" + k + ") @update\n%s" + k +
            " = reduce_sum(%q" + k + ") {axes=[1]} @update\noutput \"s" + k + "\" %s" + k + "\n";
  }
  return text;
}

// Chunks of a gradient, their sums, and the sum of those, of tensors of so many chunks of 512.
std::string norms(const std::vector<int64_t>& chunks) {
  std::string text;
  std::string tail;
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::string k = std::to_string(i);
    text += "feed %g" + k + ": f32[" + n(chunks[i]) + ",512]\n%q" + k + " = mul(%g" + k + ", %g" +
            k + ") @update\n%p" + k + " = reduce_sum(%q" + k + ") {axes=[1]} @update\n%t" + k +
            " = reduce_sum(%p" + k + ") {axes=[0,1]} @update\n";
    tail += "output \"t" + k + "\" %t" + k + "\n";
  }
  return text + tail;
}

// The tensors of GPT-2 124M.
std::vector<int64_t> gpt2_sizes() {
  std::vector<int64_t> sizes = {50304 * 768, 1024 * 768};
  for (int layer = 0; layer < 12; ++layer) {
    for (const int64_t size : {768, 768, 768 * 2304, 2304, 768 * 768, 768, 768, 768, 768 * 3072,
                               3072, 3072 * 768, 768}) {
      sizes.push_back(size);
    }
  }
  sizes.insert(sizes.end(), {768, 768});
  return sizes;
}

std::vector<int64_t> gpt2_chunks() {
  std::vector<int64_t> chunks;
  for (const int64_t size : gpt2_sizes()) {
    if (size % 512 == 0) chunks.push_back(size / 512);
  }
  return chunks;
}

}  // namespace

std::vector<LoopCase> checked_merged_loops() {
  std::vector<LoopCase> cases;
  const auto add = [&](const std::string& name, const std::string& text, double tolerance) {
    LoopCase added{"merged " + name, text, tolerance};
    added.in_place = true;
    added.is_merged = true;
    cases.push_back(std::move(added));
  };
  const std::vector<int64_t> sizes = {40000, 1, 768, 3, 1024, 2304, 5003, 8, 12, 2050, 768};
  add("updates", updates(sizes, "f32"), 2e-6);
  add("updates of bf16 gradients", updates(sizes, "bf16"), 2e-6);
  add("updates of two", updates({4096, 100}, "f32"), 2e-6);
  const std::vector<Rows> wholes = {{1, 5},    {1, 768},   {1, 1000},  {1, 2048}, {1, 64},
                                    {1, 5000}, {1, 30000}, {1, 33333}, {1, 2},    {1, 150000}};
  add("sums of everything", sums(wholes, "f32"), 1e-6);
  add("sums of everything, bf16", sums(wholes, "bf16"), 1e-5);
  add("sums of rows",
      sums({{3, 512}, {1000, 512}, {2, 512}, {7, 384}, {2000, 384}, {5, 100}, {77, 512}}, "bf16"),
      1e-5);
  add("norms", norms({3, 75, 1, 600, 4000, 3456, 1152, 1}), 1e-5);
  return cases;
}

std::vector<LoopCase> measured_merged_loops() {
  std::vector<LoopCase> cases;
  for (const bool is_merged : {false, true}) {
    const std::string form = is_merged ? ", merged" : ", not merged";
    LoopCase update{"AdamW of GPT-2's tensors" + form, updates(gpt2_sizes(), "f32"), 0, true};
    LoopCase norm{"norm of GPT-2's tensors" + form, norms(gpt2_chunks())};
    for (LoopCase* added : {&update, &norm}) {
      added->is_merged = is_merged;
      cases.push_back(std::move(*added));
    }
  }
  return cases;
}

}  // namespace sgtc::testing
