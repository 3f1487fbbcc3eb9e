#include "gpu/loop_cases.h"

namespace sgtc::testing {
namespace {

std::string n(int64_t value) { return std::to_string(value); }

void add_elementwise(std::vector<LoopCase>& cases) {
  for (int64_t size : {1, 15, 32, 1000, 40000}) {
    cases.push_back(
        {"chain of " + n(size), "feed %x: f32[" + n(size) + "]\nfeed %y: f32[" + n(size) +
                                    "]\n%s = add(%x, %y)\n%m = mul(%s, %x)\n%t = tanh(%m)\n"
                                    "%z = sub(%t, %y)\noutput \"z\" %z\noutput \"m\" %m"});
  }
  for (int64_t columns : {1, 3, 16, 36}) {
    cases.push_back({"broadcasts over " + n(columns),
                     "feed %x: f32[5," + n(columns) + "]\nfeed %row: f32[" + n(columns) +
                         "]\nfeed %column: f32[5,1]\nfeed %one: f32[]\n%a = add(%x, %row)\n"
                         "%b = mul(%a, %column)\n%c = max(%b, %one)\noutput \"c\" %c"});
  }
  for (const std::string type : {"f16", "bf16", "f32", "f64"}) {
    const std::string head = "feed %x: " + type + "[3,40]\nfeed %y: " + type + "[40]\n";
    cases.push_back({"arithmetic in " + type,
                     head + "%a = add(%x, %y)\n%b = mul(%a, %x)\n%c = div(%b, %y)\n"
                            "%d = sub(%c, %x)\n%e = max(%d, %y)\n%f = min(%e, %x)\n"
                            "%g = abs(%f)\n%h = sqrt(%g)\n%r = round(%x)\noutput \"c\" %c\n"
                            "output \"h\" %h\noutput \"r\" %r",
                     1e-7});
  }
}

void add_functions(std::vector<LoopCase>& cases) {
  for (const std::string type : {"f32", "f64"}) {
    for (const std::string op :
         {"exp", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
          "atanh", "erf", "sigmoid", "softplus", "rsqrt", "log", "reciprocal"}) {
      cases.push_back({op + " in " + type, "feed %x: " + type + "[1000]\n%a = abs(%x)\n%y = " + op +
                                               "(%a)\noutput \"y\" %y"});
    }
    cases.push_back({"powers in " + type, "feed %x: " + type + "[1000]\nfeed %y: " + type +
                                              "[1000]\n%a = abs(%x)\n%p = pow(%a, %y)\n"
                                              "%f = fmod(%x, %y)\n%m = mod(%x, %y)\n"
                                              "output \"p\" %p\noutput \"f\" %f\n"
                                              "output \"m\" %m"});
  }
}

// The functions that GPUs compute in their own way.
void add_hardware_functions(std::vector<LoopCase>& cases) {
  for (const std::string scale : {"0.01", "1", "43"}) {
    const std::string head = "constant %k: f32[] = [" + scale + "]\n%a = mul(%x, %k)\n";
    std::string functions, outputs;
    for (const std::string op : {"exp", "tanh", "sigmoid"}) {
      functions += "%" + op + " = " + op + "(%a)\n";
      outputs += "output \"" + op + "\" %" + op + "\n";
    }
    const std::string exact = "feed %x: f32[60000]\n" + head + functions + "%erf = erf(%a)\n" +
                              outputs + "output \"erf\" %erf";
    cases.push_back({"functions of numbers below 2 x " + scale, exact});
    cases.back().units = 4;
    const std::string narrow =
        "feed %h: bf16[60000]\nfeed %b: bf16[60000]\n"
        "%x = cast(%h) {to=\"f32\"}\n%y = cast(%b) {to=\"f32\"}\n" +
        head + functions + "%q = div(%a, %y)\n%p = abs(%a)\n" + "%r = rsqrt(%p)\n%s = sqrt(%p)\n" +
        outputs + "output \"q\" %q\noutput \"r\" %r\noutput \"s\" %s";
    cases.push_back({"approximations of numbers below 2 x " + scale, narrow});
    cases.back().units = 512;
  }
}

void add_integers(std::vector<LoopCase>& cases) {
  for (const std::string type : {"i8", "i16", "i32", "i64", "u8", "u64"}) {
    cases.push_back({"integers " + type,
                     "feed %x: " + type + "[40]\nfeed %y: " + type + "[40]\nconstant %c: " + type +
                         "[] = [2]\n%d = sub(%y, %c)\n%q = div(%x, %d)\n"
                         "%m = mod(%x, %d)\n%p = pow(%d, %x)\n%l = max(%x, %d)\n"
                         "%r = reduce_sum(%q) {axes=[0]}\noutput \"q\" %q\n"
                         "output \"m\" %m\noutput \"p\" %p\noutput \"l\" %l\n"
                         "output \"r\" %r",
                     0});
  }
  const std::vector<std::string> types = {"bool", "i8",  "i16",  "i32", "i64", "u8", "u16",
                                          "u32",  "u64", "bf16", "f16", "f32", "f64"};
  for (const std::string& from : types) {
    std::string text = "feed %x: " + from + "[24]\n";
    for (const std::string& to : types) {
      text += "%" + to + " = cast(%x) {to=\"" + to + "\"}\noutput \"" + to + "\" %" + to + "\n";
    }
    cases.push_back({"casts from " + from, text, 0});
  }
}

void add_movements(std::vector<LoopCase>& cases) {
  cases.push_back({"transpose",
                   "feed %x: f32[3,5,8]\n%t = transpose(%x) {perm=[2,0,1]}\n%e = exp(%t)\n"
                   "output \"e\" %e"});
  cases.push_back({"slice",
                   "feed %x: f32[9,20]\n%s = slice(%x) {starts=[8,1], sizes=[4,6], steps=[-2,3]}\n"
                   "%e = neg(%s)\noutput \"e\" %e"});
  cases.push_back({"pad",
                   "feed %x: f32[3,18]\nconstant %v: f32[] = [2.5]\n"
                   "%p = pad(%x, %v) {low=[1,2], high=[0,4]}\n%e = mul(%p, %p)\noutput \"e\" %e"});
  cases.push_back({"concat of columns",
                   "feed %x: f32[3,18]\nfeed %y: f32[3,4]\nfeed %z: f32[3,2]\n%n = neg(%y)\n"
                   "%c = concat(%x, %n, %z) {axis=1}\n%e = add(%c, %c)\noutput \"e\" %e"});
  cases.push_back({"concat of rows",
                   "feed %x: f32[3,20]\nfeed %y: f32[2,20]\n%c = concat(%x, %y) {axis=0}\n"
                   "output \"c\" %c"});
  cases.push_back({"reshapes",
                   "feed %x: f32[4,6,8]\n%e = exp(%x)\n%r = reshape(%e) {shape=[4,48]}\n"
                   "feed %b: f32[48]\n%s = add(%r, %b)\n%q = reshape(%s) {shape=[2,2,3,16]}\n"
                   "%t = transpose(%q) {perm=[0,2,1,3]}\n%u = neg(%t)\noutput \"u\" %u"});
  cases.push_back({"iota and where",
                   "feed %x: f32[6,20]\n%r = iota() {shape=[6,20], axis=0, dtype=\"i64\"}\n"
                   "%c = iota() {shape=[6,20], axis=1, dtype=\"i64\"}\n"
                   "%keep = greater_equal(%r, %c)\nconstant %low: f32[] = [-1e9]\n"
                   "%y = where(%keep, %x, %low)\noutput \"y\" %y"});
}

void add_gathers(std::vector<LoopCase>& cases) {
  cases.push_back({"embedding",
                   "feed %table: f32[4,20]\nfeed %ids: i64[2,3]\nfeed %pos: f32[3,20]\n"
                   "%g = gather(%table, %ids) {axis=0}\n%y = add(%g, %pos)\noutput \"y\" %y"});
  cases.push_back({"gather of elements",
                   "feed %x: f32[4,7]\nfeed %ids: i64[4,7]\n"
                   "%g = gather_elements(%x, %ids) {axis=0}\noutput \"g\" %g"});
  cases.push_back({"gather in batches",
                   "feed %x: f32[2,4,5,6]\nfeed %ids: i64[2,3,2]\n"
                   "%g = gather_nd(%x, %ids) {batch_dims=1}\noutput \"g\" %g"});
  cases.push_back({"an index out of range",
                   "feed %x: f32[2,20]\nconstant %i: i64[3] = [0, -7, 1]\n"
                   "%g = gather(%x, %i) {axis=0}\noutput \"g\" %g",
                   1e9,
                   false,
                   {1, -7, 2}});
}

void add_reductions(std::vector<LoopCase>& cases) {
  for (int64_t columns : {2, 15, 16, 33, 1000, 5000}) {
    for (const std::string op : {"sum", "max", "min", "prod"}) {
      cases.push_back({op + " of rows of " + n(columns),
                       "feed %x: f32[7," + n(columns) + "]\n%r = reduce_" + op +
                           "(%x) {axes=[1]}\n%y = neg(%r)\noutput \"y\" %y",
                       1e-5});
    }
  }
  for (int64_t columns : {1, 2, 15, 16, 64, 130, 2000}) {
    for (const std::string op : {"sum", "max"}) {
      cases.push_back({op + " of columns, " + n(columns),
                       "feed %x: f32[99," + n(columns) + "]\n%r = reduce_" + op +
                           "(%x) {axes=[0]}\noutput \"r\" %r",
                       1e-5});
    }
  }
  const std::string squares = "\n%q = mul(%x, %x)\n%s = reduce_sum(%q) {axes=";
  cases.push_back({"long columns", "feed %x: f32[50000,3]" + squares + "[0]}\noutput \"s\" %s"});
  cases.push_back({"long rows", "feed %x: f32[7,60000]" + squares + "[1]}\noutput \"s\" %s"});
  cases.push_back(
      {"outer and inner", "feed %x: f32[300,2,49]" + squares + "[0,2]}\noutput \"s\" %s"});
  cases.push_back({"wide sums",
                   "feed %x: f64[5,300]\n%s = reduce_sum(%x) {axes=[1]}\n"
                   "%t = reduce_max(%x) {axes=[1]}\noutput \"s\" %s\noutput \"t\" %t",
                   1e-12});
  cases.push_back({"narrow sums",
                   "feed %x: bf16[5,304]\n%s = reduce_sum(%x) {axes=[1]}\noutput \"s\" %s", 8e-3});
  cases.push_back({"truth of rows",
                   "feed %x: f32[5,70]\nconstant %h: f32[] = [1.9]\n%b = greater(%x, %h)\n"
                   "%c = cast(%b) {to=\"i32\"}\n%s = reduce_max(%c) {axes=[1]}\noutput \"s\" %s",
                   0});
}

std::string normalisation(int64_t rows, int64_t columns, const std::string& type) {
  const std::string size = "[" + n(rows) + "," + n(columns) + "]";
  const bool narrow = type != "f32";
  return "feed %h: " + type + size + "\nfeed %g: f32[" + n(columns) + "]\nfeed %b: f32[" +
         n(columns) + "]\n" + (narrow ? "%x = cast(%h) {to=\"f32\"}\n" : "%x = abs(%h)\n") +
         "%s = reduce_sum(%x) {axes=[1]}\nconstant %i: f32[] = [" +
         std::to_string(1.0 / static_cast<double>(columns)) +
         "]\n%m = mul(%s, %i)\n%c = sub(%x, %m)\n%q = mul(%c, %c)\n"
         "%v = reduce_sum(%q) {axes=[1]}\n%w = mul(%v, %i)\nconstant %eps: f32[] = [1e-5]\n"
         "%a = add(%w, %eps)\n%r = rsqrt(%a)\n%n = mul(%c, %r)\n%k = mul(%n, %g)\n"
         "%l = add(%k, %b)\n%y = cast(%l) {to=\"" +
         type + "\"}\noutput \"y\" %y\noutput \"m\" %m\noutput \"r\" %r";
}

std::string normalisation_gradient(int64_t rows, int64_t columns, const std::string& type) {
  const std::string size = "[" + n(rows) + "," + n(columns) + "]";
  return "feed %h: " + type + size + "\nfeed %e: " + type + size + "\nfeed %g: f32[" + n(columns) +
         "]\nfeed %m: f32[" + n(rows) + ",1]\nfeed %r: f32[" + n(rows) +
         ",1]\n%x = cast(%h) {to=\"f32\"}\n%d = cast(%e) {to=\"f32\"}\n%c = sub(%x, %m)\n"
         "%n = mul(%c, %r)\n%a = mul(%d, %g)\n%p = mul(%a, %n)\n%s = reduce_sum(%a) {axes=[1]}\n"
         "%t = reduce_sum(%p) {axes=[1]}\nconstant %i: f32[] = [" +
         std::to_string(1.0 / static_cast<double>(columns)) +
         "]\n%u = mul(%s, %i)\n%v = mul(%t, %i)\n%w = mul(%n, %v)\n%j = sub(%a, %u)\n"
         "%k = sub(%j, %w)\n%l = mul(%k, %r)\n%y = cast(%l) {to=\"" +
         type + "\"}\noutput \"y\" %y";
}

// Of what a block adds to the residual stream, and of the sum.
std::string residual_normalisation(int64_t rows, int64_t columns) {
  const std::string size = ": bf16[" + n(rows) + "," + n(columns) + "]\n";
  const std::string norm = normalisation(rows, columns, "bf16");
  const std::string head = "feed %h" + size;
  return "feed %o" + size + "feed %p" + size + "%h = add(%o, %p)\n" + norm.substr(head.size()) +
         "\noutput \"h\" %h";
}

// With the gradient that goes past the block.
std::string residual_normalisation_gradient(int64_t rows, int64_t columns) {
  return "feed %past: bf16[" + n(rows) + "," + n(columns) + "]\n" +
         normalisation_gradient(rows, columns, "bf16") + "\n%z = add(%y, %past)\noutput \"z\" %z";
}

// Of weight and bias, in chunks of rows.
std::string normalisation_weight_gradients(int64_t chunks, int64_t rows, int64_t columns) {
  const std::string size = ": bf16[" + n(chunks) + "," + n(rows) + "," + n(columns) + "]\n";
  const std::string row = ": f32[" + n(chunks) + "," + n(rows) + ",1]\n";
  return "feed %h" + size + "feed %e" + size + "feed %m" + row + "feed %r" + row +
         "%x = cast(%h) {to=\"f32\"}\n%d = cast(%e) {to=\"f32\"}\n%c = sub(%x, %m)\n"
         "%n = mul(%c, %r)\n%p = mul(%d, %n)\n%s = reduce_sum(%d) {axes=[1]}\n"
         "%t = reduce_sum(%p) {axes=[1]}\noutput \"s\" %s\noutput \"t\" %t";
}

std::string softmax(int64_t rows, int64_t columns, const std::string& type) {
  const std::string size = "[" + n(rows) + "," + n(columns) + "]";
  return "feed %h: " + type + size + "\n%c = iota() {shape=" + size +
         ", axis=1, dtype=\"i64\"}\nconstant %first: i64[] = [" + n(columns / 2) +
         "]\n%hidden = less(%c, %first)\nconstant %low: f32[] = [-inf]\n"
         "%w = cast(%h) {to=\"f32\"}\n%x = where(%hidden, %low, %w)\n"
         "%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
         "%s = reduce_sum(%e) {axes=[1]}\n%p = div(%e, %s)\n%y = cast(%p) {to=\"" +
         type + "\"}\noutput \"y\" %y\noutput \"s\" %s";
}

std::string cross_entropy(int64_t rows, int64_t columns, const std::string& type) {
  const std::string size = "[" + n(rows) + "," + n(columns) + "]";
  return "feed %h: " + type + size + "\nfeed %label: i64[" + n(rows) +
         ",1]\n%x = cast(%h) {to=\"f32\"}\n%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n"
         "%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n%l = log(%s)\n"
         "%p = pick(%d, %label) {axis=1}\n%n = sub(%l, %p)\noutput \"n\" %n\noutput \"m\" %m\n"
         "output \"s\" %s";
}

std::string cross_entropy_gradient(int64_t rows, int64_t columns, const std::string& type) {
  const std::string size = "[" + n(rows) + "," + n(columns) + "]";
  return "feed %h: " + type + size + "\nfeed %label: i64[" + n(rows) + ",1]\nfeed %m: f32[" +
         n(rows) + ",1]\nfeed %f: f32[" + n(rows) +
         ",1]\n%s = abs(%f)\n%x = cast(%h) {to=\"f32\"}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
         "%p = div(%e, %s)\n%c = iota() {shape=[" +
         n(rows) + "," + n(columns) +
         "], axis=1, dtype=\"i64\"}\n%o = equal(%c, %label)\n%t = cast(%o) {to=\"f32\"}\n"
         "%g = sub(%p, %t)\n%y = cast(%g) {to=\"" +
         type + "\"}\noutput \"y\" %y";
}

std::string adamw(int64_t size) {
  const std::string shape = ": f32[" + n(size) + "]";
  return "feed %g" + shape + "\nstate parameter %w" + shape + " = fill(1)\nstate moment %m" +
         shape + " = zero\nstate moment %v" + shape +
         " = zero\nconstant %a: f32[] = [0.9]\nconstant %b: f32[] = [0.1]\n"
         "constant %c: f32[] = [0.999]\nconstant %d: f32[] = [0.001]\n"
         "constant %eps: f32[] = [1e-8]\nconstant %lr: f32[] = [0.001]\n"
         "constant %decay: f32[] = [0.01]\n%ma = mul(%m, %a) @update\n%gb = mul(%g, %b) @update\n"
         "%m2 = add(%ma, %gb) @update\n%vc = mul(%v, %c) @update\n%gg = mul(%g, %g) @update\n"
         "%gd = mul(%gg, %d) @update\n%v2 = add(%vc, %gd) @update\n%av = abs(%v2) @update\n"
         "%root = sqrt(%av) @update\n%den = add(%root, %eps) @update\n"
         "%q = div(%m2, %den) @update\n%wd = mul(%w, %decay) @update\n"
         "%sum = add(%q, %wd) @update\n%move = mul(%sum, %lr) @update\n"
         "%w2 = sub(%w, %move) @update\nupdate %w = %w2\nupdate %m = %m2\nupdate %v = %v2";
}

std::string gelu(int64_t size, const std::string& type) {
  return "feed %h: " + type + "[" + n(size) +
         "]\n%x = cast(%h) {to=\"f32\"}\nconstant %c: f32[] = [0.044715]\n"
         "constant %k: f32[] = [0.7978846]\nconstant %half: f32[] = [0.5]\n"
         "constant %one: f32[] = [1]\n%a = mul(%x, %x)\n%b = mul(%a, %x)\n%d = mul(%b, %c)\n"
         "%e = add(%x, %d)\n%f = mul(%e, %k)\n%t = tanh(%f)\n%u = add(%t, %one)\n"
         "%v = mul(%u, %x)\n%w = mul(%v, %half)\n%y = cast(%w) {to=\"" +
         type + "\"}\noutput \"y\" %y";
}

std::string gelu_gradient(int64_t size, const std::string& type) {
  const std::string shape = ": " + type + "[" + n(size) + "]\n";
  const std::string forward = gelu(size, type);
  return "feed %i" + shape + forward.substr(0, forward.find("\n%v")) +
         "\n%g = cast(%i) {to=\"f32\"}\nconstant %three: f32[] = [0.134145]\n"
         "%tt = mul(%t, %t)\n%n = sub(%one, %tt)\n%o = mul(%a, %three)\n%p = add(%o, %one)\n"
         "%q = mul(%p, %k)\n%r = mul(%n, %q)\n%s = mul(%r, %x)\n%uu = add(%u, %s)\n"
         "%vv = mul(%uu, %half)\n%ww = mul(%vv, %g)\n%z = cast(%ww) {to=\"" +
         type + "\"}\noutput \"z\" %z";
}

std::string sum_of(const std::string& type, int64_t size) {
  const std::string shape = ": " + type + "[" + n(size) + "]";
  return "feed %x" + shape + "\nfeed %y" + shape + "\n%z = add(%x, %y)\noutput \"z\" %z";
}

std::string columns_of(int64_t outer, int64_t rows, int64_t columns) {
  return "feed %h: bf16[" + n(outer) + "," + n(rows) + "," + n(columns) +
         "]\n%x = cast(%h) {to=\"f32\"}\n%s = reduce_sum(%x) {axes=[1]}\noutput \"s\" %s";
}

void add_forms_of_models(std::vector<LoopCase>& cases) {
  for (int64_t columns : {5, 50, 304, 1600, 3000}) {
    cases.push_back({"layer norm of " + n(columns), normalisation(6, columns, "f32"), 1e-5});
    cases.push_back({"layer norm of bf16, " + n(columns), normalisation(6, columns, "bf16"), 8e-3});
    cases.push_back(
        {"its gradient, " + n(columns), normalisation_gradient(6, columns, "f32"), 1e-4});
    cases.push_back({"cross-entropy of " + n(columns), cross_entropy(9, columns, "f32"), 1e-5});
    cases.push_back(
        {"its gradient of " + n(columns), cross_entropy_gradient(9, columns, "bf16"), 8e-3});
  }
  for (int64_t columns : {32, 768, 3000, 40000}) {
    cases.push_back({"softmax of " + n(columns), softmax(3, columns, "f32"), 1e-5});
    cases.push_back({"softmax of bf16, " + n(columns), softmax(3, columns, "bf16"), 8e-3});
  }
  cases.push_back({"cross-entropy of 50304", cross_entropy(2, 50304, "bf16"), 1e-4});
  cases.push_back({"residual and layer norm", residual_normalisation(50, 768), 8e-3});
  cases.push_back({"its gradient past a residual", residual_normalisation_gradient(50, 768), 2e-2});
  cases.push_back({"gradients of norm weights", normalisation_weight_gradients(3, 200, 96), 1e-4});
  cases.push_back({"gelu gradient", gelu_gradient(4096, "bf16"), 8e-3});
  cases.push_back({"batch norm",
                   "feed %x: f32[4,6,5,7]\nfeed %g: f32[6,1,1]\n"
                   "%s = reduce_sum(%x) {axes=[0,2,3]}\nconstant %i: f32[] = [0.007142857]\n"
                   "%m = mul(%s, %i)\n%c = sub(%x, %m)\n%q = mul(%c, %c)\n"
                   "%v = reduce_sum(%q) {axes=[0,2,3]}\n%r = rsqrt(%v)\n%n = mul(%c, %r)\n"
                   "%y = mul(%n, %g)\noutput \"y\" %y\noutput \"v\" %v",
                   1e-5});
  cases.push_back({"batch norm, channels last",
                   "feed %x: f32[40,24]\n%s = reduce_sum(%x) {axes=[0]}\n"
                   "constant %i: f32[] = [0.025]\n%m = mul(%s, %i)\n%c = sub(%x, %m)\n"
                   "%q = mul(%c, %c)\n%v = reduce_sum(%q) {axes=[0]}\n%r = rsqrt(%v)\n"
                   "%y = mul(%c, %r)\noutput \"y\" %y\noutput \"v\" %v",
                   1e-5});
  cases.push_back({"columns in chunks", columns_of(3, 200, 96), 1e-5});
  cases.push_back({"gelu", gelu(4096, "bf16"), 8e-3});
  cases.push_back({"adamw", adamw(5003)});
  cases.push_back({"adamw in place", adamw(5004), 2e-6, true});
  for (const std::string op : {"random_uniform", "random_normal"}) {
    const std::string head = "feed %seed: i64[]\nfeed %step: i64[]\nfeed %x: f32[7,36]\n";
    cases.push_back({op, head + "%u = " + op +
                             "(%seed, %step) {shape=[7,36], stream=5}\n%y = mul(%x, %u)\n"
                             "output \"y\" %y\noutput \"u\" %u"});
    cases.push_back({op + " transposed",
                     head + "%u = " + op +
                         "(%seed, %step) {shape=[36,7], stream=5}\n"
                         "%t = transpose(%u) {perm=[1,0]}\n%y = mul(%x, %t)\noutput \"y\" %y"});
  }
  cases.push_back({"accumulators and stacked rows",
                   "graph \"g\" rows 2 micro_batches 1\nfeed %x: f32[2,40]\n"
                   "state accumulator %a: f32[40] = zero\nstate parameter %w: f32[40] = fill(1)\n"
                   "%s = reduce_sum(%x) {axes=[0]}\n%r = reshape(%s) {shape=[40]} @backward\n"
                   "%n = accumulate(%a, %r) @backward\n"
                   "%k = stack_micro_batches(%s) {micro_batches=1}\n%v = sub(%w, %n) @update\n"
                   "%t = reduce_sum(%k) {axes=[0]} @update\noutput \"t\" %t\nupdate %w = %v"});
}

}  // namespace

std::vector<LoopCase> checked_loops() {
  std::vector<LoopCase> cases;
  add_elementwise(cases);
  add_functions(cases);
  add_hardware_functions(cases);
  add_integers(cases);
  add_movements(cases);
  add_gathers(cases);
  add_reductions(cases);
  add_forms_of_models(cases);
  return cases;
}

std::vector<LoopCase> measured_loops() {
  return {{"copy-like add, f32, 2^28", sum_of("f32", int64_t{1} << 28)},
          {"copy-like add, bf16, 2^28", sum_of("bf16", int64_t{1} << 28)},
          {"tanh GELU, bf16, 32768 x 3072", gelu(int64_t{32768} * 3072, "bf16")},
          {"LayerNorm forward, bf16, 32768 x 768", normalisation(32768, 768, "bf16")},
          {"LayerNorm forward, bf16, 32768 x 1600", normalisation(32768, 1600, "bf16")},
          {"residual + LayerNorm, bf16, 32768 x 768", residual_normalisation(32768, 768)},
          {"LayerNorm backward, bf16, 32768 x 768", normalisation_gradient(32768, 768, "bf16")},
          {"the same + residual, bf16, 32768 x 768", residual_normalisation_gradient(32768, 768)},
          {"LayerNorm backward, bf16, 32768 x 1600", normalisation_gradient(32768, 1600, "bf16")},
          {"its weights, bf16, 64 x 512 x 768", normalisation_weight_gradients(64, 512, 768)},
          {"tanh GELU backward, bf16, 32768 x 3072", gelu_gradient(int64_t{32768} * 3072, "bf16")},
          {"cross-entropy, bf16, 8192 x 50304", cross_entropy(8192, 50304, "bf16")},
          {"its gradient, bf16, 8192 x 50304", cross_entropy_gradient(8192, 50304, "bf16")},
          {"sums of columns, bf16, 64 x 512 x 768", columns_of(64, 512, 768)},
          {"sums of columns, bf16, 64 x 512 x 3072", columns_of(64, 512, 3072)},
          {"AdamW in place, f32, 2^27", adamw(int64_t{1} << 27), 0, true}};
}

}  // namespace sgtc::testing
