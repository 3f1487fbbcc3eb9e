#include <cmath>

#include "gpu/loop_cases.h"

namespace sgtc::testing {
namespace {

// Weights and gradients of scores are rounded to bfloat16 before they meet values and keys.
constexpr double kTolerance = 2.5e-2;

std::string n(int64_t value) { return std::to_string(value); }

struct Sizes {
  int64_t batch, heads, key_heads, queries, keys, size, value_size;
  bool causal = false;
};

// A mask %mask of bfloat16 as nodes of a graph, and whether a query may see no key.
struct Mask {
  std::string name;
  std::string text;
  bool has_empty_rows = false;
};

std::string shape(int64_t batch, int64_t heads, int64_t rows, int64_t size) {
  return "bf16[" + n(batch) + "," + n(heads) + "," + n(rows) + "," + n(size) + "]";
}

std::string flags(const Sizes& s, const Mask& mask) {
  return " {scale=" + std::to_string(1 / std::sqrt(static_cast<double>(s.size))) +
         ", causal=" + n(s.causal) + ", zero_empty=" + n(mask.has_empty_rows) + "}\n";
}

// Attention and both halves of its gradient.
LoopCase attention(const Sizes& s, const Mask& mask = {}) {
  const std::string o = shape(s.batch, s.heads, s.queries, s.value_size);
  const std::string last = mask.text.empty() ? "" : ", %mask";
  const std::string text =
      "feed %q: " + shape(s.batch, s.heads, s.queries, s.size) +
      "\nfeed %k: " + shape(s.batch, s.key_heads, s.keys, s.size) +
      "\nfeed %v: " + shape(s.batch, s.key_heads, s.keys, s.value_size) + "\nfeed %g: " + o + "\n" +
      mask.text + "%o, %m, %s = attention(%q, %k, %v" + last + ")" + flags(s, mask) +
      "%dq, %t = attention_query_grad(%q, %k, %v, %o, %m, %s, %g" + last + ")" + flags(s, mask) +
      "%dk, %dv = attention_key_grad(%q, %k, %v, %g, %t" + last + ")" + flags(s, mask) +
      "output \"o\" %o\noutput \"m\" %m\noutput \"s\" %s\noutput \"dq\" %dq\noutput \"dk\" %dk\n"
      "output \"dv\" %dv";
  const std::string name = "attention of " + n(s.queries) + " queries and " + n(s.keys) +
                           " keys of " + n(s.size) + " and " + n(s.value_size) +
                           (s.causal ? ", causal" : "") + mask.name;
  return {name, text, kTolerance, false, {}, 5};
}

void add_sizes(std::vector<LoopCase>& cases) {
  for (const int64_t size : {64, 128}) {
    cases.push_back(attention({2, 3, 3, 300, 300, size, size, true}));
    cases.push_back(attention({1, 4, 2, 130, 321, size, size, false}));
    cases.push_back(attention({1, 2, 2, 200, 70, size, size, true}));
  }
  cases.push_back(attention({1, 2, 1, 100, 90, 32, 40, false}));
  cases.push_back(attention({1, 2, 1, 100, 90, 80, 96, true}));
  cases.push_back(attention({1, 1, 1, 1, 1, 8, 8, true}));
}

// Where %b is false a score is hidden by `low`.
std::string hide(const std::string& condition, const std::string& shape, const std::string& low) {
  return "feed %b: bool" + condition +
         "\nconstant %shown: bf16[] = [0]\nconstant %hidden: bf16[] = [" + low +
         "]\n%c = where(%b, %shown, %hidden)\n%mask = broadcast(%c) {shape=" + shape + "}\n";
}

void add_masks(std::vector<LoopCase>& cases, int64_t keys, int64_t size) {
  const Sizes s = {2, 4, 2, 100, keys, size, size};
  const Sizes causal = {2, 4, 2, 100, keys, size, size, true};
  const std::string k = n(keys);
  const std::string per_key = "[2,1,1," + k + "]", pairs = "[2,1,100," + k + "]";
  const std::string rows = "[100," + k + "]";
  cases.push_back(attention(s, {", numbers per key", "feed %mask: bf16" + per_key + "\n"}));
  cases.push_back(attention(causal, {", numbers", "feed %mask: bf16[4,100," + k + "]\n"}));
  cases.push_back(attention(s, {", hidden keys", hide(per_key, per_key, "-inf")}));
  cases.push_back(attention(causal, {", pairs", hide(pairs, pairs, "-inf"), true}));
  cases.push_back(attention(s, {", hidden queries", hide("[100,1]", rows, "-inf"), true}));
  cases.push_back(
      attention(s, {", queries hidden by a number", hide("[100,1]", rows, "-3.3895e38")}));
}

// q, k and v are parts of one tensor, and so are their gradients.
LoopCase packed(int64_t batch, int64_t heads, int64_t rows, int64_t size) {
  const std::string part = "[" + n(batch) + "," + n(rows) + "," + n(heads * size) + "]";
  const std::string by_head = "[" + n(batch) + "," + n(rows) + "," + n(heads) + "," + n(size) + "]";
  const std::string flags =
      " {scale=" + std::to_string(1 / std::sqrt(static_cast<double>(size))) + ", causal=1}\n";
  std::string text = "feed %x: bf16[" + n(batch) + "," + n(rows) + "," + n(3 * heads * size) +
                     "]\nfeed %g: bf16" + part + "\n";
  const auto split = [&](const std::string& name, const std::string& from) {
    text += "%" + name + "4 = reshape(%" + from + ") {shape=" + by_head + "}\n%" + name +
            " = transpose(%" + name + "4) {perm=[0,2,1,3]}\n";
  };
  const auto merge = [&](const std::string& name) {
    text += "%" + name + "4 = transpose(%" + name + ") {perm=[0,2,1,3]}\n%" + name +
            "3 = reshape(%" + name + "4) {shape=" + part + "}\n";
  };
  int64_t begin = 0;
  for (const std::string name : {"q", "k", "v"}) {
    text += "%" + name + "3 = slice(%x) {starts=[0,0," + n(begin) + "], sizes=" + part +
            ", steps=[1,1,1]}\n";
    split(name, name + "3");
    begin += heads * size;
  }
  text += "%o, %m, %s = attention(%q, %k, %v)" + flags;
  merge("o");
  split("do", "g");
  text += "%dq, %t = attention_query_grad(%q, %k, %v, %o, %m, %s, %do)" + flags +
          "%dk, %dv = attention_key_grad(%q, %k, %v, %do, %t)" + flags;
  for (const char* name : {"dq", "dk", "dv"}) merge(name);
  text += "%dx = concat(%dq3, %dk3, %dv3) {axis=2}\noutput \"o\" %o3\noutput \"dx\" %dx";
  return {"packed attention of " + n(size), text, kTolerance, false, {}, 5};
}

}  // namespace

std::vector<LoopCase> checked_attentions() {
  std::vector<LoopCase> cases;
  add_sizes(cases);
  add_masks(cases, 150, 64);
  add_masks(cases, 203, 128);
  for (const int64_t size : {64, 128}) cases.push_back(packed(2, 3, 200, size));
  return cases;
}

}  // namespace sgtc::testing
