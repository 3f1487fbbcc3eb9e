// Loop kernels on every dtype.
#include "codegen/run_graph.h"

using namespace sgtc;
using namespace sgtc::test;

TEST_CASE("arithmetic in every float type") {
  for (const std::string type : {"f16", "bf16", "f32", "f64"}) {
    const std::string head = "feed %x: " + type + "[3,37]\nfeed %y: " + type + "[37]\n";
    check_text(head +
                   "%a = add(%x, %y)\n%b = mul(%a, %x)\n%c = div(%b, %y)\n%d = sub(%c, %x)\n"
                   "%e = max(%d, %y)\n%f = min(%e, %x)\n%g = abs(%f)\n%h = sqrt(%g)\n"
                   "output \"c\" %c\noutput \"h\" %h",
               {}, 1e-7);
    check_text(head +
               "%f = floor(%x)\n%c = ceil(%x)\n%r = round(%x)\n%s = sign(%x)\n%n = neg(%y)\n"
               "output \"f\" %f\noutput \"c\" %c\noutput \"r\" %r\noutput \"s\" %s\n"
               "output \"n\" %n");
  }
}

TEST_CASE("functions in single and double precision") {
  for (const std::string type : {"f32", "f64"}) {
    for (const std::string op :
         {"exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "sigmoid",
          "softplus", "rsqrt", "log", "reciprocal"}) {
      check_text("feed %x: " + type + "[37]\n%a = abs(%x)\n%y = " + op + "(%a)\noutput \"y\" %y",
                 {}, 2e-6);
    }
    check_text("feed %x: " + type + "[37]\nfeed %y: " + type +
                   "[37]\n%a = abs(%x)\n"
                   "%p = pow(%a, %y)\n%f = fmod(%x, %y)\n%m = mod(%x, %y)\noutput \"p\" %p\n"
                   "output \"f\" %f\noutput \"m\" %m",
               {}, 2e-6);
  }
}

TEST_CASE("integer arithmetic, also by zero") {
  for (const std::string type : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    check_text("feed %x: " + type + "[37]\nfeed %y: " + type + "[37]\nconstant %c: " + type +
               "[] = [2]\n%d = sub(%y, %c)\n%q = div(%x, %d)\n%m = mod(%x, %d)\n"
               "%f = fmod(%x, %d)\n%p = pow(%d, %x)\n%l = max(%x, %d)\n%s = sign(%d)\n"
               "%r = reduce_sum(%q) {axes=[0]}\n%z = reduce_min(%d) {axes=[0]}\n"
               "output \"q\" %q\noutput \"m\" %m\noutput \"f\" %f\noutput \"p\" %p\n"
               "output \"l\" %l\noutput \"s\" %s\noutput \"r\" %r\noutput \"z\" %z");
  }
}

TEST_CASE("bits and shifts") {
  for (const std::string type : {"i32", "u8"}) {
    check_text("feed %x: " + type + "[20]\nfeed %y: " + type +
               "[20]\n%n = bit_not(%x)\n"
               "%a = bit_and(%n, %y)\n%o = bit_or(%x, %y)\n%e = bit_xor(%x, %y)\n"
               "constant %far: " +
               type +
               "[] = [40]\n%l = shift_left(%x, %y)\n"
               "%r = shift_right(%n, %y)\n%z = shift_right(%n, %far)\noutput \"a\" %a\n"
               "output \"o\" %o\noutput \"e\" %e\noutput \"l\" %l\noutput \"r\" %r\n"
               "output \"z\" %z");
  }
}

TEST_CASE("comparisons and logic") {
  check_text(
      "feed %x: f32[37]\nfeed %y: f32[37]\n%a = less(%x, %y)\n%b = greater_equal(%x, %y)\n"
      "%c = equal(%a, %b)\n%d = logical_or(%a, %c)\n%e = logical_not(%d)\n"
      "%f = logical_xor(%e, %b)\n%g = logical_and(%f, %a)\noutput \"c\" %c\n"
      "output \"f\" %f\noutput \"g\" %g");
}

TEST_CASE("casts between all types") {
  const std::vector<std::string> types = {"bool", "i8",  "i16",  "i32", "i64", "u8", "u16",
                                          "u32",  "u64", "bf16", "f16", "f32", "f64"};
  for (const std::string& from : types) {
    std::string text = "feed %x: " + from + "[21]\n";
    for (const std::string& to : types) {
      text += "%" + to + " = cast(%x) {to=\"" + to + "\"}\noutput \"" + to + "\" %" + to + "\n";
    }
    check_text(text, {}, 0);
  }
}

TEST_CASE("casts of numbers without a counterpart saturate, NaN becomes 0 and true") {
  std::string text = "feed %x: f32[6]\n";
  for (const std::string to : {"bool", "i8", "u8", "i64", "u64", "bf16", "f16"}) {
    text += "%" + to + " = cast(%x) {to=\"" + to + "\"}\noutput \"" + to + "\" %" + to + "\n";
  }
  Graph graph = parse_graph(text);
  GraphRunner runner(graph);
  const Tensor x(graph.type(graph.feeds[0]), {300, NAN, INFINITY, -INFINITY, -1.5, 1e30});
  Interpreter interpreter(graph);
  runner.set(graph.feeds[0], x);
  interpreter.set("x", x);
  runner.run(Phase::kForward, Phase::kForward, 0);
  interpreter.run();
  for (const Output& output : graph.outputs) {
    check_close(runner.tensor(output.value), interpreter.value(output.value), 0, output.name);
  }
}

TEST_CASE("NaN wins in max and min, and only infinities are infinite") {
  Graph graph = parse_graph(
      "feed %x: f32[4]\nfeed %y: f32[4]\n%a = max(%x, %y)\n%b = min(%x, %y)\n%c = is_nan(%a)\n"
      "%d = is_inf(%x) {positive=1, negative=0}\n%e = is_inf(%x) {positive=1, negative=1}\n"
      "%m = reduce_max(%x) {axes=[0]}\noutput \"a\" %a\noutput \"b\" %b\noutput \"c\" %c\n"
      "output \"d\" %d\noutput \"e\" %e\noutput \"m\" %m");
  GraphRunner runner(graph);
  Interpreter interpreter(graph);
  const Tensor x(graph.type(graph.feeds[0]), {NAN, 1, INFINITY, -INFINITY});
  const Tensor y(graph.type(graph.feeds[1]), {1, NAN, 2, 3});
  runner.set(graph.feeds[0], x);
  runner.set(graph.feeds[1], y);
  interpreter.set("x", x);
  interpreter.set("y", y);
  runner.run(Phase::kForward, Phase::kForward, 0);
  interpreter.run();
  for (const Output& output : graph.outputs) {
    check_close(runner.tensor(output.value), interpreter.value(output.value), 0, output.name);
  }
}

TEST_CASE("sums of narrow floats are rounded once") {
  for (const std::string type : {"f16", "bf16"}) {
    check_text("feed %x: " + type + "[5,300]\n%s = reduce_sum(%x) {axes=[1]}\noutput \"s\" %s", {},
               type == "f16" ? 1e-3 : 8e-3);
  }
}
