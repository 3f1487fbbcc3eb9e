#include "gpu/loop_cases.h"

namespace sgtc::testing {
namespace {

// Products of bfloat16 numbers, rounded once to bfloat16, from sums in another order.
constexpr double kTolerance = 1e-2;

std::string n(int64_t value) { return std::to_string(value); }

// A product of [rows, depth] and [depth, columns], either stored transposed, and what follows it.
std::string product(int64_t rows, int64_t columns, int64_t depth, bool transpose_a,
                    bool transpose_b, const std::string& rest = "output \"p\" %p") {
  const std::string a = transpose_a ? n(depth) + "," + n(rows) : n(rows) + "," + n(depth);
  const std::string b = transpose_b ? n(columns) + "," + n(depth) : n(depth) + "," + n(columns);
  return "feed %a: bf16[" + a + "]\nfeed %b: bf16[" + b +
         "]\n%p = matmul(%a, %b) {transpose_a=" + n(transpose_a) +
         ", transpose_b=" + n(transpose_b) + "}\n" + rest;
}

std::string with_columns(std::string text, int64_t columns) {
  const std::string word = "COLUMNS";
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    text.replace(at, word.size(), n(columns));
  }
  return text;
}

void add_layouts(std::vector<LoopCase>& cases) {
  for (bool transpose_a : {false, true}) {
    for (bool transpose_b : {false, true}) {
      const std::string layout = std::string(transpose_a ? "l" : "d") + (transpose_b ? "d" : "l");
      // Odd sizes wherever the copy engine allows them.
      const int64_t rows = transpose_a ? 152 : 149;
      const int64_t columns = transpose_b ? 203 : 200;
      const int64_t depth = transpose_a && !transpose_b ? 77 : 72;
      cases.push_back({"matmul " + layout, product(rows, columns, depth, transpose_a, transpose_b),
                       kTolerance});
      cases.push_back({"matmul with split depth " + layout,
                       product(rows, columns, 1984, transpose_a, transpose_b), kTolerance});
      cases.push_back({"matmul on pairs " + layout,
                       product(rows, columns, 1000, transpose_a, transpose_b),
                       kTolerance,
                       false,
                       {},
                       2});
    }
  }
  cases.push_back({"matmul of one tile", product(1, 8, 8, false, false), kTolerance});
  cases.push_back(
      {"matmul of many rounds", product(700, 600, 40, false, false), kTolerance, false, {}, 3});
  cases.push_back({"matmul of batches",
                   "feed %a: bf16[5,3,150,72]\nfeed %b: bf16[5,3,90,72]\n"
                   "%p = matmul(%a, %b) {transpose_b=1}\noutput \"p\" %p",
                   kTolerance});
}

void add_epilogues(std::vector<LoopCase>& cases) {
  const auto add = [&](const std::string& name, const std::string& rest, double tolerance) {
    for (int64_t columns : {264, 200, 203}) {
      cases.push_back({name + " of " + n(columns) + " columns",
                       product(300, columns, 136, false, true, with_columns(rest, columns)),
                       tolerance});
    }
  };
  add("matmul, bias and residual",
      "feed %c: bf16[COLUMNS]\nfeed %r: bf16[300,COLUMNS]\n%s = add(%p, %c)\n%y = add(%s, %r)\n"
      "output \"y\" %y",
      2 * kTolerance);
  add("matmul, activation and its argument",
      "feed %c: f32[COLUMNS]\n%f = cast(%p) {to=\"f32\"}\n%s = add(%f, %c)\n%t = tanh(%s)\n"
      "%u = mul(%t, %s)\n%y = cast(%u) {to=\"bf16\"}\noutput \"y\" %y\noutput \"s\" %s",
      2 * kTolerance);
  add("matmul, mask by rows and columns",
      "feed %m: bool[300,1]\nfeed %k: bool[COLUMNS]\nconstant %z: bf16[] = [0]\n"
      "%s = where(%m, %p, %z)\n%y = where(%k, %s, %z)\noutput \"y\" %y",
      kTolerance);
  cases.push_back({"matmul that splits heads",
                   product(300, 264, 136, false, false,
                           "%r = reshape(%p) {shape=[3,100,3,88]}\n"
                           "%t = transpose(%r) {perm=[0,2,1,3]}\noutput \"t\" %t"),
                   kTolerance});
  cases.push_back({"matmul into an accumulator",
                   "graph \"g\" rows 2 micro_batches 1\nfeed %a: bf16[1984,136]\n"
                   "feed %b: bf16[1984,264]\nstate accumulator %w: f32[136,264] = zero\n"
                   "state parameter %u: f32[136,264] = fill(1)\n"
                   "%p = matmul(%a, %b) {transpose_a=1} @backward\n"
                   "%f = cast(%p) {to=\"f32\"} @backward\n%n = accumulate(%w, %f) @backward\n"
                   "%v = sub(%u, %n) @update\nupdate %u = %v",
                   kTolerance});
}

}  // namespace

std::vector<LoopCase> measured_matmuls() {
  constexpr int64_t kTokens = 32768;
  const std::string bias = "feed %c: f32[COLUMNS]\n%f = cast(%p) {to=\"f32\"}\n%s = add(%f, %c)\n";
  const std::string gelu =
      with_columns(bias, 3072) +
      "constant %h: f32[] = [0.5]\nconstant %k: f32[] = [0.7978845608]\n"
      "constant %q: f32[] = [0.044715]\nconstant %one: f32[] = [1]\n%s2 = mul(%s, %s)\n"
      "%s3 = mul(%s2, %s)\n%t = mul(%s3, %q)\n%u = add(%s, %t)\n%v = mul(%u, %k)\n"
      "%w = tanh(%v)\n%x = add(%w, %one)\n%y = mul(%s, %h)\n%z = mul(%x, %y)\n"
      "%g = cast(%z) {to=\"bf16\"}\n%e = cast(%s) {to=\"bf16\"}\noutput \"g\" %g\n"
      "output \"e\" %e";
  const std::string residual =
      with_columns(bias, 768) +
      "feed %r: bf16[32768,768]\n%o = cast(%r) {to=\"f32\"}\n%t = add(%s, %o)\n"
      "%y = cast(%t) {to=\"bf16\"}\noutput \"y\" %y";
  return {
      {"matmul qkv", product(kTokens, 2304, 768, false, false)},
      {"matmul qkv, bias",
       product(kTokens, 2304, 768, false, false,
               with_columns(bias, 2304) + "%y = cast(%s) {to=\"bf16\"}\noutput \"y\" %y")},
      {"matmul projection, bias, residual", product(kTokens, 768, 768, false, false, residual)},
      {"matmul up", product(kTokens, 3072, 768, false, false)},
      {"matmul up, bias, GELU and its argument", product(kTokens, 3072, 768, false, false, gelu)},
      {"matmul down, bias, residual", product(kTokens, 768, 3072, false, false, residual)},
      {"matmul gradient of down's operand", product(kTokens, 3072, 768, false, true)},
      {"matmul gradient of up's operand", product(kTokens, 768, 3072, false, true)},
      {"matmul gradient of up's weight", product(768, 3072, kTokens, true, false)},
      {"matmul gradient of the projection's weight", product(768, 768, kTokens, true, false)},
      {"matmul vocabulary of 50304", product(kTokens, 50304, 768, false, true)},
      {"matmul vocabulary of 50257", product(kTokens, 50257, 768, false, true)},
      {"matmul gradient of the vocabulary's operand", product(kTokens, 768, 50304, false, false)},
      {"matmul gradient of the vocabulary's weight", product(50304, 768, kTokens, true, false)},
  };
}

std::vector<LoopCase> checked_matmuls() {
  std::vector<LoopCase> cases;
  add_layouts(cases);
  add_epilogues(cases);
  return cases;
}

}  // namespace sgtc::testing
