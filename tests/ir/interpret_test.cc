// The interpreter against values computed by hand, operator by operator.
#include "ir/interpret.h"

#include <cmath>
#include <limits>

#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

using Values = std::vector<double>;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Values values_of(const Tensor& tensor) {
  Values values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
  return values;
}

// Value %y of a graph text after one step.
Values run(const std::string& text) {
  const Graph graph = parse_graph(text);
  verify(graph, "parsing");
  Interpreter interpreter(graph);
  interpreter.run();
  return values_of(interpreter.value("y"));
}

// %y = op(%a, %b, …) over constants given as "f32[2] = [1, 2]".
Values eval(const std::string& node, const std::vector<std::string>& constants) {
  std::string text;
  for (size_t i = 0; i < constants.size(); ++i) {
    text += std::string("constant %") + static_cast<char>('a' + i) + ": " + constants[i] + '\n';
  }
  return run(text + "%y = " + node);
}

std::string error_of(const std::string& node, const std::vector<std::string>& constants) {
  try {
    eval(node, constants);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool is_close(const Values& found, const Values& expected, double tolerance = 1e-6) {
  bool close = found.size() == expected.size();
  for (size_t i = 0; close && i < found.size(); ++i) {
    close = found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])) ||
            std::abs(found[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i]));
  }
  CAPTURE(found, expected);
  CHECK(close);
  return close;
}

}  // namespace

TEST_CASE("functions of one real give the values of the C library, rounded once") {
  const std::string x = "f32[3] = [0.5, -0.25, 0.75]";
  const auto check = [&](const std::string& op, double (*function)(double)) {
    INFO(op);
    const Values found = eval(op + "(%a)", {x});
    for (size_t i = 0; i < 3; ++i) {
      const float expected = static_cast<float>(function(Values{0.5, -0.25, 0.75}[i]));
      CHECK((found[i] == expected || (std::isnan(found[i]) && std::isnan(expected))));
    }
  };
  check("exp", std::exp);
  check("log", std::log);
  check("sqrt", std::sqrt);
  check("rsqrt", [](double v) { return 1 / std::sqrt(v); });
  check("reciprocal", [](double v) { return 1 / v; });
  check("sin", std::sin);
  check("cos", std::cos);
  check("tan", std::tan);
  check("asin", std::asin);
  check("acos", std::acos);
  check("atan", std::atan);
  check("sinh", std::sinh);
  check("cosh", std::cosh);
  check("tanh", std::tanh);
  check("asinh", std::asinh);
  check("atanh", std::atanh);
  check("erf", std::erf);
  check("sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); });
  check("softplus", [](double v) { return std::log(1 + std::exp(v)); });
  is_close(eval("acosh(%a)", {"f32[2] = [1, 2]"}), {0, std::acosh(2.0)});
}

TEST_CASE("functions of one real at their edges") {
  is_close(eval("softplus(%a)", {"f32[4] = [1000, -1000, inf, nan]"}), {1000, 0, kInf, kNan});
  is_close(eval("sign(%a)", {"f32[4] = [-3, -0, 2, nan]"}), {-1, 0, 1, kNan});
  is_close(eval("round(%a)", {"f32[5] = [0.5, 1.5, -0.5, -2.5, 2.4]"}), {0, 2, 0, -2, 2});
  is_close(eval("floor(%a)", {"f32[2] = [-0.5, 1.5]"}), {-1, 1});
  is_close(eval("ceil(%a)", {"f32[2] = [-0.5, 1.5]"}), {0, 2});
  is_close(eval("is_nan(%a)", {"f32[3] = [nan, 1, inf]"}), {1, 0, 0});
  is_close(eval("is_inf(%a)", {"f32[4] = [nan, 1, inf, -inf]"}), {0, 0, 1, 1});
  is_close(eval("is_inf(%a) {negative=0}", {"f32[4] = [nan, 1, inf, -inf]"}), {0, 0, 1, 0});
  CHECK(std::signbit(eval("neg(%a)", {"f32[1] = [0]"})[0]));
}

TEST_CASE("arithmetic broadcasts and rounds to the dtype") {
  is_close(eval("add(%a, %b)", {"f32[2,1] = [1, 2]", "f32[3] = [10, 20, 30]"}),
           {11, 21, 31, 12, 22, 32});
  CHECK(eval("add(%a, %b)", {"f32[] = [16777216]", "f32[] = [1]"})[0] == 16777216);
  CHECK(eval("add(%a, %b)", {"f64[] = [16777216]", "f64[] = [1]"})[0] == 16777217);
  CHECK(eval("add(%a, %b)", {"f16[] = [2048]", "f16[] = [1]"})[0] == 2048);
  CHECK(eval("add(%a, %b)", {"bf16[] = [256]", "bf16[] = [1]"})[0] == 256);
  is_close(eval("div(%a, %b)", {"f32[3] = [1, -1, 0]", "f32[] = [0]"}), {kInf, -kInf, kNan});
  is_close(eval("sub(%a, %b)", {"f32[2] = [1, 2]", "f32[2] = [3, 1]"}), {-2, 1});
}

TEST_CASE("pow at zero and with a negative base") {
  is_close(eval("pow(%a, %b)", {"f32[5] = [0, 0, 0, -2, 0]", "f32[5] = [0, 1, 2, 2, 0.5]"}),
           {1, 0, 0, 4, 0});
  is_close(eval("pow(%a, %b)", {"i32[3] = [3, -1, 2]", "i32[3] = [4, -3, -1]"}), {81, -1, 0});
  is_close(eval("pow(%a, %b)", {"i32[2] = [2, 9]", "f32[2] = [40, 0.5]"}), {2147483647, 3});
}

TEST_CASE("remainders have the sign of the divisor or of the dividend") {
  is_close(eval("mod(%a, %b)", {"i32[4] = [7, -7, 7, -7]", "i32[4] = [3, 3, -3, -3]"}),
           {1, 2, -2, -1});
  is_close(eval("fmod(%a, %b)", {"i32[4] = [7, -7, 7, -7]", "i32[4] = [3, 3, -3, -3]"}),
           {1, -1, 1, -1});
  is_close(eval("mod(%a, %b)", {"f32[4] = [7.5, -7.5, 7.5, -7.5]", "f32[4] = [2, 2, -2, -2]"}),
           {1.5, 0.5, -0.5, -1.5});
  is_close(eval("fmod(%a, %b)", {"f32[2] = [7.5, -7.5]", "f32[2] = [2, 2]"}), {1.5, -1.5});
}

TEST_CASE("integers wrap, truncate and survive a division by zero") {
  is_close(eval("add(%a, %b)", {"i8[1] = [127]", "i8[1] = [1]"}), {-128});
  is_close(eval("neg(%a)", {"u8[1] = [1]"}), {255});
  is_close(eval("div(%a, %b)", {"i32[3] = [7, -7, 5]", "i32[3] = [2, 2, 0]"}), {3, -3, 0});
  is_close(eval("div(%a, %b)", {"i64[1] = [-9223372036854775808]", "i64[1] = [-1]"}), {-0x1p63});
  is_close(eval("mod(%a, %b)", {"i64[1] = [5]", "i64[1] = [0]"}), {0});
  is_close(eval("div(%a, %b)", {"u64[1] = [18446744073709551614]", "u64[1] = [2]"}), {0x1p63 - 1});
  is_close(eval("max(%a, %b)", {"u64[1] = [18446744073709551615]", "u64[1] = [2]"}), {0x1p64});
  is_close(eval("abs(%a)", {"i32[2] = [-5, 5]"}), {5, 5});
}

TEST_CASE("max and min pass NaN on from either side") {
  is_close(eval("max(%a, %b)", {"f32[4] = [1, nan, 2, -inf]", "f32[4] = [2, 1, nan, 0]"}),
           {2, kNan, kNan, 0});
  is_close(eval("min(%a, %b)", {"f32[4] = [1, nan, 2, -inf]", "f32[4] = [2, 1, nan, 0]"}),
           {1, kNan, kNan, -kInf});
}

TEST_CASE("comparisons with NaN are false but for not_equal") {
  const std::string a = "f32[3] = [1, nan, 2]";
  const std::string b = "f32[3] = [1, nan, 1]";
  is_close(eval("equal(%a, %b)", {a, b}), {1, 0, 0});
  is_close(eval("not_equal(%a, %b)", {a, b}), {0, 1, 1});
  is_close(eval("less(%a, %b)", {a, b}), {0, 0, 0});
  is_close(eval("less_equal(%a, %b)", {a, b}), {1, 0, 0});
  is_close(eval("greater(%a, %b)", {a, b}), {0, 0, 1});
  is_close(eval("greater_equal(%a, %b)", {a, b}), {1, 0, 1});
  is_close(eval("less(%a, %b)", {"u64[1] = [1]", "u64[1] = [18446744073709551615]"}), {1});
}

TEST_CASE("logic and bits") {
  const std::string p = "bool[4] = [0, 0, 1, 1]";
  const std::string q = "bool[4] = [0, 1, 0, 1]";
  is_close(eval("logical_and(%a, %b)", {p, q}), {0, 0, 0, 1});
  is_close(eval("logical_or(%a, %b)", {p, q}), {0, 1, 1, 1});
  is_close(eval("logical_xor(%a, %b)", {p, q}), {0, 1, 1, 0});
  is_close(eval("logical_not(%a)", {p}), {1, 1, 0, 0});
  is_close(eval("bit_and(%a, %b)", {"u8[1] = [12]", "u8[1] = [10]"}), {8});
  is_close(eval("bit_or(%a, %b)", {"u8[1] = [12]", "u8[1] = [10]"}), {14});
  is_close(eval("bit_xor(%a, %b)", {"u8[1] = [12]", "u8[1] = [10]"}), {6});
  is_close(eval("bit_not(%a)", {"u8[1] = [12]"}), {243});
  is_close(eval("shift_left(%a, %b)", {"u8[3] = [3, 3, 3]", "u8[3] = [1, 7, 8]"}), {6, 128, 0});
  is_close(eval("shift_right(%a, %b)", {"u8[2] = [200, 200]", "u8[2] = [3, 9]"}), {25, 0});
  is_close(eval("shift_right(%a, %b)", {"i8[2] = [-8, -8]", "i8[2] = [1, 9]"}), {-4, -1});
}

TEST_CASE("casts saturate, NaN is 0 as integer and true as bool") {
  const std::string x = "f32[6] = [300.7, -1.9, nan, inf, -inf, 0]";
  is_close(eval("cast(%a) {to=\"i8\"}", {x}), {127, -1, 0, 127, -128, 0});
  is_close(eval("cast(%a) {to=\"u8\"}", {x}), {255, 0, 0, 255, 0, 0});
  is_close(eval("cast(%a) {to=\"i64\"}", {x}), {300, -1, 0, 0x1p63, -0x1p63, 0});
  is_close(eval("cast(%a) {to=\"bool\"}", {x}), {1, 1, 1, 1, 1, 0});
  is_close(eval("cast(%a) {to=\"i8\"}", {"i32[1] = [300]"}), {44});
  is_close(eval("cast(%a) {to=\"f32\"}", {"i32[1] = [16777217]"}), {16777216});
  is_close(eval("cast(%a) {to=\"f64\"}", {"u64[1] = [18446744073709551615]"}), {0x1p64});
  is_close(eval("cast(%a) {to=\"bool\"}", {"i32[2] = [2, 0]"}), {1, 0});
}

TEST_CASE("where picks by condition and never mixes branches") {
  is_close(eval("where(%a, %b, %c)", {"bool[2] = [1, 0]", "f32[2] = [1, nan]", "f32[] = [5]"}),
           {1, 5});
}

TEST_CASE("movement") {
  const std::string m = "f32[2,3] = [1, 2, 3, 4, 5, 6]";
  is_close(eval("reshape(%a) {shape=[3,2]}", {m}), {1, 2, 3, 4, 5, 6});
  is_close(eval("transpose(%a) {perm=[1,0]}", {m}), {1, 4, 2, 5, 3, 6});
  is_close(eval("transpose(%a) {perm=[2,0,1]}", {"i8[2,1,3] = [1, 2, 3, 4, 5, 6]"}),
           {1, 4, 2, 5, 3, 6});
  is_close(eval("broadcast(%a) {shape=[2,2]}", {"f32[2,1] = [1, 2]"}), {1, 1, 2, 2});
  is_close(eval("slice(%a) {starts=[1,2], sizes=[1,2], steps=[1,-2]}", {m}), {6, 4});
  is_close(eval("pad(%a, %b) {low=[0,1], high=[1,0]}", {"f32[1,2] = [1, 2]", "f32[] = [9]"}),
           {9, 1, 2, 9, 9, 9});
  is_close(eval("concat(%a, %b, %a) {axis=1}", {"f32[2,1] = [1, 2]", "f32[2,2] = [3, 4, 5, 6]"}),
           {1, 3, 4, 1, 2, 5, 6, 2});
  is_close(eval("place(%a) {shape=[2,3], starts=[1,1]}", {"f32[1,2] = [1, 2]"}),
           {0, 0, 0, 0, 1, 2});
  is_close(eval("place(%a, %b) {shape=[2,2], starts=[0,1]}",
                {"f32[2,1] = [1, 2]", "f32[2,2] = [3, 4, 5, 6]"}),
           {3, 1, 5, 2});
  is_close(run("%y = iota() {axis=1, dtype=\"i32\", shape=[2,3]}"), {0, 1, 2, 0, 1, 2});
  is_close(run("%y = iota() {axis=0, dtype=\"f32\", shape=[2,3]}"), {0, 0, 0, 1, 1, 1});
}

TEST_CASE("gathers take negative indices from the end") {
  const std::string e = "f32[5] = [1, 2, 3, 4, 5]";
  is_close(eval("gather(%a, %b) {axis=0}", {e, "i64[4] = [-1, -3, 0, -1]"}), {5, 3, 1, 5});
  is_close(eval("gather(%a, %b) {axis=1}", {"f32[2,2] = [1, 2, 3, 4]", "i32[3] = [1, 0, -1]"}),
           {2, 1, 2, 4, 3, 4});
  is_close(eval("gather_elements(%a, %b) {axis=0}",
                {"f32[3,2] = [1, 2, 3, 4, 5, 6]", "i64[2,2] = [-1, 0, 1, -2]"}),
           {5, 2, 3, 4});
  is_close(eval("gather_nd(%a, %b) {batch_dims=0}",
                {"f32[2,2] = [1, 2, 3, 4]", "i64[2,2] = [0, -1, 1, 0]"}),
           {2, 3});
  is_close(eval("gather_nd(%a, %b) {batch_dims=1}",
                {"f32[2,2,2] = [1, 2, 3, 4, 5, 6, 7, 8]", "i64[2,1] = [1, 0]"}),
           {3, 4, 5, 6});
  is_close(eval("pick(%a, %b) {axis=1}", {"f32[2,3] = [1, 2, 3, 4, 5, 6]", "i64[2,1] = [2, 0]"}),
           {3, 4});
}

TEST_CASE("an index out of range names the node and the extent") {
  const std::string e = "f32[5] = [1, 2, 3, 4, 5]";
  CHECK(error_of("gather(%a, %b) {axis=0} \"emb\"", {e, "i64[1] = [5]"}) ==
        "gather %y (node emb): index 5 is out of range for 5 elements");
  CHECK(error_of("gather(%a, %b) {axis=0}", {e, "i64[1] = [-6]"}) ==
        "gather %y: index -6 is out of range for 5 elements");
  CHECK(error_of("pick(%a, %b) {axis=0}", {e, "i64[1] = [-1]"}) ==
        "pick %y: index -1 is out of range for 5 elements");
  CHECK(error_of("gather_elements(%a, %b) {axis=0}", {e, "i64[1] = [7]"}) != "no error");
  CHECK(error_of("gather_nd(%a, %b) {batch_dims=0}", {e, "i64[1] = [7]"}) != "no error");
  CHECK(error_of("scatter_nd(%a, %b, %c) {reduction=\"add\"}",
                 {e, "i64[1,1] = [5]", "f32[1] = [1]"}) != "no error");
}

TEST_CASE("scatters add repeated indices up") {
  is_close(eval("scatter_add(%a, %b, %c) {axis=0}",
                {"f32[5] = [0, 0, 0, 0, 0]", "i64[4] = [-1, -3, 0, -1]", "f32[4] = [1, 2, 4, 8]"}),
           {4, 0, 2, 0, 9});
  is_close(eval("scatter_add(%a, %b, %c) {axis=1}",
                {"f32[1,2] = [10, 20]", "i64[2] = [1, 1]", "f32[1,2] = [1, 2]"}),
           {10, 23});
  const std::vector<std::string> elements = {"f32[3] = [1, 2, 3]", "i64[3] = [0, 0, -1]",
                                             "f32[3] = [5, 7, 2]"};
  const std::string op = "scatter_elements(%a, %b, %c) {axis=0, reduction=";
  is_close(eval(op + "\"none\"}", elements), {7, 2, 2});
  is_close(eval(op + "\"add\"}", elements), {13, 2, 5});
  is_close(eval(op + "\"mul\"}", elements), {35, 2, 6});
  is_close(eval(op + "\"max\"}", elements), {7, 2, 3});
  is_close(eval(op + "\"min\"}", elements), {1, 2, 2});
  is_close(eval("scatter_nd(%a, %b, %c) {reduction=\"none\"}",
                {"f32[2,2] = [1, 2, 3, 4]", "i64[1,1] = [-1]", "f32[1,2] = [8, 9]"}),
           {1, 2, 8, 9});
}

TEST_CASE("reductions") {
  const std::string m = "f32[2,3] = [1, 5, 3, 4, 2, 6]";
  is_close(eval("reduce_sum(%a) {axes=[1]}", {m}), {9, 12});
  is_close(eval("reduce_sum(%a) {axes=[0,1]}", {m}), {21});
  is_close(eval("reduce_max(%a) {axes=[0]}", {m}), {4, 5, 6});
  is_close(eval("reduce_min(%a) {axes=[1]}", {m}), {1, 2});
  is_close(eval("reduce_prod(%a) {axes=[1]}", {m}), {15, 48});
  is_close(eval("reduce_sum(%a) {axes=[0]}", {"f32[0,2] = []"}), {0, 0});
  is_close(eval("reduce_prod(%a) {axes=[0]}", {"i32[0,2] = []"}), {1, 1});
  is_close(eval("reduce_max(%a) {axes=[0]}", {"f32[3] = [1, nan, 2]"}), {kNan});
  is_close(eval("reduce_sum(%a) {axes=[0]}", {"i8[2] = [127, 1]"}), {-128});
}

TEST_CASE("arg_max and arg_min take the first or the last, and NaN") {
  const std::string v = "f32[4] = [1, 3, 3, 1]";
  is_close(eval("arg_max(%a) {axis=0}", {v}), {1});
  is_close(eval("arg_max(%a) {axis=0, select_last=1}", {v}), {2});
  is_close(eval("arg_min(%a) {axis=0}", {v}), {0});
  is_close(eval("arg_min(%a) {axis=0, select_last=1}", {v}), {3});
  is_close(eval("arg_max(%a) {axis=0}", {"f32[4] = [1, nan, 9, nan]"}), {1});
  is_close(eval("arg_min(%a) {axis=0}", {"f32[4] = [1, nan, -9, nan]"}), {1});
  is_close(eval("arg_max(%a) {axis=0}", {"i32[2,2] = [1, 4, 3, 2]"}), {1, 0});
}

TEST_CASE("cum_sum runs both ways, with or without its own element") {
  const std::string v = "f32[3] = [1, 2, 4]";
  is_close(eval("cum_sum(%a) {axis=0}", {v}), {1, 3, 7});
  is_close(eval("cum_sum(%a) {axis=0, exclusive=1}", {v}), {0, 1, 3});
  is_close(eval("cum_sum(%a) {axis=0, reverse=1}", {v}), {7, 6, 4});
  is_close(eval("cum_sum(%a) {axis=0, exclusive=1, reverse=1}", {v}), {6, 4, 0});
  is_close(eval("cum_sum(%a) {axis=0}", {"i32[2,2] = [1, 2, 3, 4]"}), {1, 2, 4, 6});
}

TEST_CASE("top_k sorts, ties by the lower index") {
  const Graph graph = parse_graph(
      "constant %c: f32[5] = [3, 1, nan, 3, 2]\n%v, %i = top_k(%c) {axis=0, k=4}\n"
      "%w, %j = top_k(%c) {axis=0, k=5, largest=0}");
  Interpreter interpreter(graph);
  interpreter.run();
  is_close(values_of(interpreter.value("v")), {kNan, 3, 3, 2});
  is_close(values_of(interpreter.value("i")), {2, 0, 3, 4});
  is_close(values_of(interpreter.value("w")), {1, 2, 3, 3, kNan});
  is_close(values_of(interpreter.value("j")), {1, 4, 0, 3, 2});
}

TEST_CASE("matmul with transposes, batches and integers") {
  const std::string a = "f32[2,2] = [1, 2, 3, 4]";
  const std::string b = "f32[2,2] = [5, 6, 7, 8]";
  is_close(eval("matmul(%a, %b)", {a, b}), {19, 22, 43, 50});
  is_close(eval("matmul(%a, %b) {transpose_a=1}", {a, b}), {26, 30, 38, 44});
  is_close(eval("matmul(%a, %b) {transpose_b=1}", {a, b}), {17, 23, 39, 53});
  is_close(eval("matmul(%a, %b) {transpose_a=1, transpose_b=1}", {a, b}), {23, 31, 34, 46});
  is_close(eval("matmul(%a, %b)", {"f32[2,1,2] = [1, 2, 3, 4]", "f32[2,1] = [5, 6]"}), {17, 39});
  is_close(eval("matmul(%a, %b)", {"i32[1,2] = [3, 4]", "i32[2,1] = [5, 6]"}), {39});
  is_close(eval("matmul(%a, %b)", {"f32[1,0] = []", "f32[0,2] = []"}), {0, 0});
  // [[5, 6, 7], [8, 9, 10]] in panels of two columns.
  is_close(eval("matmul(%a, %b) {packed_columns=3}", {a, "f32[2,2,2] = [5, 6, 8, 9, 7, 0, 10, 0]"}),
           {21, 24, 27, 47, 54, 61});
}
