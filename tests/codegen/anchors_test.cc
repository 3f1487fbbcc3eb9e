// Written kernels, specialised to their shapes, against the interpreter.
#include "codegen/run_graph.h"
#include "passes/sink_movements.h"

using namespace sgtc;
using namespace sgtc::test;

namespace {

std::string n(int64_t value) { return std::to_string(value); }

std::string matmul(const std::string& a, const std::string& b, const std::string& attributes,
                   const std::string& type = "f32") {
  return "feed %a: " + type + a + "\nfeed %b: " + type + b + "\n%y = matmul(%a, %b) {" +
         attributes + "}\noutput \"y\" %y";
}

const std::string kWindow = "strides=[2,1], pads=[1,0,1,2], dilations=[1,2]";

// Softmax attention with the given sizes; `more` is a mask operand or nothing.
std::string attention(const std::string& q, const std::string& k, const std::string& v,
                      const std::string& mask, bool causal, const std::string& type = "f32") {
  const std::string more = mask.empty() ? "" : "feed %m: " + type + mask + "\n";
  return "feed %q: " + type + q + "\nfeed %k: " + type + k + "\nfeed %v: " + type + v + "\n" +
         more + "%y, %max, %sum = attention(%q, %k, %v" + (mask.empty() ? "" : ", %m") +
         ") {scale=0.25, causal=" + n(causal) +
         "}\noutput \"y\" %y\noutput \"max\" %max\noutput \"sum\" %sum";
}

std::string attention_grad(const std::string& q, const std::string& k, const std::string& v,
                           const std::string& y, const std::string& mask, bool causal,
                           const std::string& type = "f32") {
  const auto feed = [&](const std::string& name, const std::string& shape) {
    return "feed %" + name + ": " + type + shape + "\n";
  };
  const std::string last = mask.empty() ? "" : ", %m";
  const std::string attributes = ") {scale=0.25, causal=" + n(causal) + "}\n";
  return feed("q", q) + feed("k", k) + feed("v", v) + feed("d", y) +
         (mask.empty() ? "" : feed("m", mask)) + "%y, %max, %sum = attention(%q, %k, %v" + last +
         attributes + "%dq, %dk, %dv = attention_grad(%q, %k, %v, %y, %max, %sum, %d" + last +
         attributes + "output \"dq\" %dq\noutput \"dk\" %dk\noutput \"dv\" %dv";
}

// Attention and its gradient between the projections of a packed q, k and v, `heads` of 16.
std::string packed_attention(int64_t batch, int64_t heads, const std::string& mask) {
  const std::string b = n(batch), h = n(heads), w = n(heads * 16),
                    more = mask.empty() ? "" : ", %m";
  std::string text = "feed %x: f32[" + b + ",70," + n(heads * 48) + "]\nfeed %g: f32[" + b +
                     ",70," + w + "]\n" + (mask.empty() ? "" : "feed %m: f32" + mask + "\n");
  const auto moved = [&](const std::string& to, const std::string& from) {
    text += "%" + to + "4 = reshape(%" + from + ") {shape=[" + b + ",70," + h + ",16]}\n%" + to +
            " = transpose(%" + to + "4) {perm=[0,2,1,3]}\n";
  };
  const auto moved_back = [&](const std::string& to, const std::string& from) {
    text += "%" + to + "4 = transpose(%" + from + ") {perm=[0,2,1,3]}\n%" + to + " = reshape(%" +
            to + "4) {shape=[" + b + ",70," + w + "]}\n";
  };
  int64_t begin = 0;
  for (const std::string part : {"q", "k", "v"}) {
    text += "%" + part + "3 = slice(%x) {starts=[0,0," + n(begin) + "], sizes=[" + b + ",70," + w +
            "], steps=[1,1,1]}\n";
    moved(part, part + "3");
    begin += heads * 16;
  }
  const std::string attributes = ") {scale=0.25, causal=" + n(mask.empty()) + "}\n";
  text += "%o, %l, %s = attention(%q, %k, %v" + more + attributes;
  moved_back("y", "o");
  moved("d", "g");
  text += "%dq, %dk, %dv = attention_grad(%q, %k, %v, %o, %l, %s, %d" + more + attributes;
  for (const std::string part : {"q", "k", "v"}) moved_back("d" + part + "3", "d" + part);
  return text + "%dx = concat(%dq3, %dk3, %dv3) {axis=2}\noutput \"y\" %y\noutput \"dx\" %dx";
}

}  // namespace

TEST_CASE("products of packed columns") {
  const auto check = [](const std::string& a, const std::string& panels,
                        const std::string& attributes, const std::string& type,
                        double tolerance = 1e-5) {
    check_text(matmul(a, panels, attributes, type), {}, tolerance);
  };
  check("[5,7]", "[1,7,32]", "packed_columns=3", "f32");
  check("[50,33]", "[2,50,32]", "packed_columns=64, transpose_a=1", "f32");
  check("[130,600]", "[13,600,32]", "packed_columns=400", "f32", 1e-4);
  check("[1,4200]", "[2,4200,32]", "packed_columns=49", "f32", 1e-3);
  check("[13,300]", "[2,300,32]", "packed_columns=33", "f64");
}

TEST_CASE("matrix products of all transpositions, batches and odd sizes") {
  check_text(matmul("[5,7]", "[7,3]", ""), {}, 1e-5);
  check_text(matmul("[7,50]", "[7,33]", "transpose_a=1"), {}, 1e-5);
  check_text(matmul("[200,40]", "[150,40]", "transpose_b=1"), {}, 1e-5);
  check_text(matmul("[3,5,4]", "[2,3,6,5]", "transpose_a=1, transpose_b=1"), {}, 1e-5);
  check_text(matmul("[2,1,4,5]", "[3,5,6]", ""), {}, 1e-5);
  check_text(matmul("[2,3,4,5]", "[5,6]", ""), {}, 1e-5);
  check_text(matmul("[1,300]", "[300,1]", ""), {}, 1e-4);
  check_text(matmul("[0,3]", "[3,4]", ""));
  check_text(matmul("[4,0]", "[0,3]", ""));
}

TEST_CASE("matrix products of other element types") {
  check_text(matmul("[20,30]", "[30,10]", "", "f64"), {}, 1e-13);
  check_text(matmul("[20,30]", "[30,10]", "", "bf16"), {}, 1e-2);
  check_text(matmul("[20,30]", "[30,10]", "", "f16"), {}, 1e-3);
  check_text(matmul("[20,30]", "[30,10]", "", "i64"));
  check_text(matmul("[20,30]", "[30,10]", "transpose_b=0", "i8"));
}

TEST_CASE("products of narrow elements whose sums are not rounded") {
  for (const std::string type : {"bf16", "f16"}) {
    check_text(matmul("[20,300]", "[300,10]", "result=\"f32\"", type), {}, 1e-5);
    check_text("feed %x: " + type + "[2,4,9,8]\nfeed %w: " + type +
                   "[6,2,3,2]\nfeed %c: f32[6,1,1]\n%y = conv(%x, %w) {" + kWindow +
                   ", groups=2, result=\"f32\"}\n%s = add(%y, %c)\n%z = cast(%s) {to=\"" + type +
                   "\"}\n%v = conv_weight_grad(%x, %z) {" + kWindow +
                   ", groups=2, kernel=[3,2], result=\"f32\"}\noutput \"y\" %s\noutput \"v\" %v",
               {}, 1e-5);
  }
  check_bits(
      "feed %a: bf16[300,270]\nfeed %b: bf16[270,140]\nfeed %c: f32[140]\n"
      "%y = matmul(%a, %b) {result=\"f32\"}\n%s = add(%y, %c)\n%z = cast(%s) {to=\"bf16\"}\n"
      "output \"z\" %z");
}

TEST_CASE("bits of matrix products depend on neither fusion nor blocks nor the CPU") {
  check_bits(matmul("[300,270]", "[270,140]", "") +
             "\nfeed %c: f32[140]\n%s = add(%y, %c)\n%t = tanh(%s)\noutput \"t\" %t");
}

TEST_CASE("epilogues of matrix products") {
  check_text(
      "feed %a: f32[2,20,9]\nfeed %b: f32[9,35]\nfeed %c: f32[35]\nfeed %r: f32[2,20,35]\n"
      "%y = matmul(%a, %b)\n%s = add(%y, %c)\n%t = tanh(%s)\n%z = add(%t, %r)\n"
      "output \"z\" %z\noutput \"s\" %s",
      {}, 1e-5);
}

TEST_CASE("convolutions and their gradients") {
  const std::string w = "feed %w: f32[6,2,3,2]\n", x = "feed %x: f32[2,4,9,8]\n";
  check_text(x + w + "%y = conv(%x, %w) {" + kWindow + ", groups=2}\noutput \"y\" %y", {}, 1e-5);
  check_text("feed %y: f32[2,6,5,8]\n" + w + "%x = conv_input_grad(%y, %w) {" + kWindow +
                 ", groups=2, input=[9,8]}\noutput \"x\" %x",
             {}, 1e-5);
  check_text(x + "feed %y: f32[2,6,5,8]\n%w = conv_weight_grad(%x, %y) {" + kWindow +
                 ", groups=2, kernel=[3,2]}\noutput \"w\" %w",
             {}, 1e-5);
  check_text(
      "feed %x: f32[1,3,30]\nfeed %w: f32[5,3,4]\nfeed %b: f32[5,1]\n%y = conv(%x, %w) "
      "{strides=[1], pads=[2,1], dilations=[1], groups=1}\n%s = add(%y, %b)\n"
      "output \"s\" %s",
      {}, 1e-5);
  check_text(
      "feed %x: f32[1,2,4,5,6]\nfeed %w: f32[3,2,2,3,2]\n%y = conv(%x, %w) "
      "{strides=[1,2,1], pads=[0,1,0,1,1,0], dilations=[2,1,1], groups=1}\n"
      "output \"y\" %y",
      {}, 1e-5);
}

TEST_CASE("convolutions with many channels and their gradients") {
  const std::string window = "{strides=[2,1], pads=[1,1,1,1], dilations=[1,1], groups=2";
  const std::string x = "feed %x: f32[3,40,15,13]\n", w = "feed %w: f32[36,20,3,3]\n";
  const std::string y = "feed %y: f32[3,36,8,13]\n";
  check_text(x + w + "feed %b: f32[36,1,1]\n%c = conv(%x, %w) " + window +
                 "}\n%s = add(%c, %b)\noutput \"s\" %s",
             {}, 1e-5);
  check_text(y + w + "feed %x: f32[3,40,15,13]\n%g = conv_input_grad(%y, %w) " + window +
                 ", input=[15,13]}\n%s = mul(%g, %x)\noutput \"s\" %s",
             {}, 1e-5);
  check_text(x + y + "%g = conv_weight_grad(%x, %y) " + window +
                 ", kernel=[3,3]}\n%s = tanh(%g)\noutput \"s\" %s",
             {}, 1e-5);
}

TEST_CASE("bits of convolutions depend on neither fusion nor blocks nor the CPU") {
  check_bits(
      "feed %x: f32[2,20,14,14]\nfeed %w: f32[30,20,3,3]\n%y = conv(%x, %w) "
      "{strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1}\n%z = tanh(%y)\n"
      "%v = conv_weight_grad(%x, %z) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], "
      "groups=1, kernel=[3,3]}\noutput \"y\" %z\noutput \"v\" %v");
}

TEST_CASE("pools and their gradients") {
  const std::string x = "feed %x: f32[2,3,9,8]\n", kernel = ", kernel=[3,2], output=[5,8]}\n";
  check_text(x + "%y = max_pool(%x) {" + kWindow + kernel + "output \"y\" %y");
  check_text(x + "feed %d: f32[2,3,5,8]\n%g = max_pool_grad(%x, %d) {" + kWindow + kernel +
             "output \"g\" %g");
  check_text(
      "feed %x: i32[1,2,9]\n%y = max_pool(%x) {kernel=[2], strides=[2], pads=[0,1], "
      "dilations=[1], output=[5]}\noutput \"y\" %y");
  for (const int64_t include : {0, 1}) {
    const std::string attributes = "{" + kWindow + ", count_include_pad=" + n(include);
    check_text(x + "%y = average_pool(%x) " + attributes + kernel + "output \"y\" %y");
    check_text("feed %d: f32[2,3,5,8]\n%g = average_pool_grad(%d) " + attributes + ", input=[9,8]" +
               kernel + "output \"g\" %g");
  }
  check_bits(
      "feed %x: f32[2,8,40,40]\nfeed %d: f32[2,8,20,20]\n%y = max_pool(%x) {kernel=[3,3], "
      "strides=[2,2], pads=[1,1,1,1], dilations=[1,1], output=[20,20]}\n"
      "%g = max_pool_grad(%x, %d) {kernel=[3,3], strides=[2,2], pads=[1,1,1,1], "
      "dilations=[1,1], output=[20,20]}\noutput \"y\" %y\noutput \"g\" %g");
}

TEST_CASE("scatters") {
  for (const std::string type : {"f32", "f64", "bf16", "i64"}) {
    const double tolerance = type == "bf16" ? 1e-2 : 1e-5;
    check_text("feed %x: " + type + "[2,5,130]\nfeed %i: i64[3,4]\nfeed %u: " + type +
                   "[2,3,4,130]\n%y = scatter_add(%x, %i, %u) {axis=1}\noutput \"y\" %y",
               {}, tolerance);
    for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
      check_text("feed %x: " + type + "[4,5,6]\nfeed %i: i32[3,7,5]\nfeed %u: " + type +
                     "[3,7,5]\n%y = scatter_elements(%x, %i, %u) {axis=1, reduction=\"" +
                     reduction + "\"}\noutput \"y\" %y",
                 {}, tolerance);
      check_text("feed %x: " + type + "[4,5,70]\nfeed %i: i64[6,2]\nfeed %u: " + type +
                     "[6,70]\n%y = scatter_nd(%x, %i, %u) {reduction=\"" + reduction +
                     "\"}\noutput \"y\" %y",
                 {}, tolerance);
    }
  }
  check_text(
      "feed %x: bool[7]\nfeed %i: i64[3]\nfeed %u: bool[3]\n"
      "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"none\"}\noutput \"y\" %y");
  check_bits(
      "feed %x: f32[9,200]\nfeed %i: i64[50]\nfeed %u: f32[50,200]\n"
      "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y");
}

TEST_CASE("negative indices count from the end, bad ones are reported") {
  const Graph graph = parse_graph(
      "feed %x: f32[4,3]\nfeed %i: i64[2]\nfeed %u: f32[2,3]\n"
      "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y");
  for (const int64_t index : {-1, -4, 4, -5}) {
    GraphRunner runner(graph);
    const auto set = [&](const std::string& name, std::vector<double> values) {
      const ValueId id = graph.find(name);
      runner.set(id, Tensor(graph.type(id), values));
    };
    set("x", std::vector<double>(12, 0));
    set("i", {1, static_cast<double>(index)});
    set("u", {1, 1, 1, 2, 2, 2});
    runner.run(Phase::kPrologue, Phase::kUpdate, 0);
    const bool valid = index >= -4 && index < 4;
    CHECK(runner.status()[0] == (valid ? 0 : 1));
    if (valid) {
      CHECK(runner.tensor(graph.find("y")).at((index + 4) % 4 * 3) == 2);
    } else {
      CHECK(runner.status()[1] == index);
      CHECK(runner.status()[2] == 4);
    }
  }
}

TEST_CASE("cumulative sums, positions of extrema and sorting") {
  for (const std::string type : {"f32", "f16", "i32", "u8"}) {
    const std::string x = "feed %x: " + type + "[3,20,5]\n";
    for (const std::string flags :
         {"", ", exclusive=1", ", reverse=1", ", exclusive=1, reverse=1"}) {
      check_text(x + "%y = cum_sum(%x) {axis=1" + flags + "}\noutput \"y\" %y", {}, 1e-3);
    }
    for (const int64_t last : {0, 1}) {
      check_text(x + "%y = arg_max(%x) {axis=1, select_last=" + n(last) + "}\noutput \"y\" %y");
      check_text(x + "%y = arg_min(%x) {axis=2, select_last=" + n(last) + "}\noutput \"y\" %y");
    }
    for (const int64_t k : {0, 1, 7, 20}) {
      for (const int64_t largest : {0, 1}) {
        check_text(x + "%y, %i = top_k(%x) {axis=1, k=" + n(k) + ", largest=" + n(largest) +
                   "}\noutput \"y\" %y\noutput \"i\" %i");
      }
    }
  }
}

TEST_CASE("attention") {
  check_text(attention("[1,2,100,4]", "[1,2,100,4]", "[1,2,100,4]", "[2,100,1]", true), {}, 1e-5);
  check_text(attention("[2,4,50,16]", "[2,4,70,16]", "[2,4,70,24]", "", false), {}, 1e-5);
  check_text(attention("[1,4,130,8]", "[1,2,130,8]", "[1,2,130,8]", "", true), {}, 1e-5);
  check_text(attention("[2,2,9,20]", "[2,1,100,20]", "[2,1,100,150]", "[2,1,1,100]", false), {},
             1e-5);
  check_text(attention("[1,2,7,5]", "[1,2,11,5]", "[1,2,11,3]", "[7,11]", true), {}, 1e-5);
  check_text(attention("[1,2,7,200]", "[1,2,11,200]", "[1,2,11,3]", "", false), {}, 1e-5);
  check_text(attention("[1,2,7,5]", "[1,2,11,5]", "[1,2,11,3]", "", false, "f64"), {}, 1e-13);
  check_text(attention("[1,2,7,5]", "[1,2,11,5]", "[1,2,11,3]", "", false, "bf16"), {}, 2e-2);
  check_bits(attention("[2,4,100,16]", "[2,2,100,16]", "[2,2,100,16]", "", true));
}

TEST_CASE("attention and its gradient read and write packed tensors") {
  for (const std::string& text :
       {packed_attention(2, 4, ""), packed_attention(1, 2, "[1,70,70]")}) {
    INFO(text);
    const Graph graph = sink_movements(parse_graph(text), kCpuTarget);
    CHECK(GraphRunner(graph).groups().size() == 2);
    check_graph(graph, {}, 3e-5);
    RunOptions split;
    split.blocks_per_call = 1;
    split.backwards = true;
    CHECK(output_bytes(graph, split) == output_bytes(parse_graph(text), {}));
  }
}

TEST_CASE("attention without queries or keys") {
  check_text(attention("[2,1,0,4]", "[2,1,3,4]", "[2,1,3,4]", "", false));
  check_text(attention_grad("[2,8,3,4]", "[2,8,0,4]", "[2,8,0,5]", "[2,8,3,5]", "", false));
  check_text(attention_grad("[2,8,0,4]", "[2,8,3,4]", "[2,8,3,5]", "[2,8,0,5]", "", true));
}

TEST_CASE("gradients of attention, a head at a time") {
  check_text(attention_grad("[4,4,60,16]", "[4,2,60,16]", "[4,2,60,20]", "[4,4,60,20]",
                            "[4,1,60,60]", false),
             {}, 3e-5);
  check_text(attention_grad("[2,4,20,9]", "[2,4,50,9]", "[2,4,50,7]", "[2,4,20,7]", "", true), {},
             3e-5);
  check_text(
      attention_grad("[1,8,70,140]", "[1,8,50,140]", "[1,8,50,3]", "[1,8,70,3]", "[8,1,50]", true),
      {}, 3e-5);
  check_text(
      attention_grad("[2,4,50,5]", "[2,4,50,5]", "[2,4,50,5]", "[2,4,50,5]", "", true, "f64"), {},
      1e-12);
  check_bits(attention_grad("[2,4,100,16]", "[2,4,100,16]", "[2,4,100,16]", "[2,4,100,16]",
                            "[100,100]", false));
}

TEST_CASE("gradients of attention on 16-bit numbers") {
  check_text(
      attention_grad("[2,4,50,8]", "[2,4,50,8]", "[2,4,50,8]", "[2,4,50,8]", "", true, "bf16"), {},
      5e-2);
}

TEST_CASE("gradients of attention, split") {
  check_text(attention_grad("[1,4,50,16]", "[1,4,70,16]", "[1,4,70,24]", "[1,4,50,24]", "", false),
             {}, 3e-5);
  check_text(attention_grad("[1,4,130,8]", "[1,2,130,8]", "[1,2,130,8]", "[1,4,130,8]", "", true),
             {}, 3e-5);
  check_text(attention_grad("[1,2,9,20]", "[1,1,100,20]", "[1,1,100,150]", "[1,2,9,150]", "[9,100]",
                            false),
             {}, 3e-5);
  check_text(attention_grad("[1,2,7,200]", "[1,2,11,200]", "[1,2,11,3]", "[1,2,7,3]", "", true), {},
             3e-5);
  check_bits(
      attention_grad("[2,4,100,16]", "[2,2,100,16]", "[2,2,100,16]", "[2,4,100,16]", "", true));
}
