// Shape rules: results and the texts of errors.
#include "ir/graph.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

namespace {

// "f32[2,3] i64[2]": the result types of a node text over feeds %a, %b, … of the given types.
std::string types_of(const std::vector<std::string>& feeds, const std::string& node) {
  std::string text;
  for (size_t i = 0; i < feeds.size(); ++i) {
    text += std::string("feed %") + static_cast<char>('a' + i) + ": " + feeds[i] + '\n';
  }
  const size_t count =
      static_cast<size_t>(info(*op_from_name(node.substr(0, node.find('(')))).results);
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "%r" : ", %r") + std::to_string(i);
  try {
    const Graph graph = parse_graph(text + " = " + node);
    std::string types;
    for (const ValueId result : graph.nodes.back().results) {
      const TensorType& type = graph.type(result);
      types +=
          (types.empty() ? "" : " ") + std::string(name_of(type.dtype)) + to_string(type.shape);
    }
    return types;
  } catch (const Error& error) {
    const std::string what = error.what();
    return what.substr(what.find(": ") + 2);  // without line and column
  }
}

}  // namespace

TEST_CASE("every operator has a name of its own that leads back to it") {
  for (int i = 0; i < kOpCount; ++i) CHECK(op_from_name(name_of(Op(i))) == Op(i));
  CHECK(!op_from_name("adds"));
}

TEST_CASE("the table is in the order of the enumeration") {
  CHECK(name_of(Op::kCast) == "cast");
  CHECK(name_of(Op::kWhere) == "where");
  CHECK(name_of(Op::kIota) == "iota");
  CHECK(name_of(Op::kScatterNd) == "scatter_nd");
  CHECK(name_of(Op::kTopK) == "top_k");
  CHECK(name_of(Op::kAveragePoolGrad) == "average_pool_grad");
  CHECK(name_of(Op::kAttentionGrad) == "attention_grad");
  CHECK(name_of(Op::kStackMicroBatches) == "stack_micro_batches");
}

TEST_CASE("elementwise shape rules") {
  CHECK(types_of({"f32[2,1]", "f32[3]"}, "add(%a, %b)") == "f32[2,3]");
  CHECK(types_of({"f32[2]", "f32[3]"}, "add(%a, %b)") ==
        "add: expected operands that broadcast, found [2] and [3]");
  CHECK(types_of({"f32[2]", "f64[2]"}, "add(%a, %b)") ==
        "add: expected operand 1 of type f32 as operand 0, found f64");
  CHECK(types_of({"bool[2]", "bool[2]"}, "add(%a, %b)") ==
        "add: expected operand 0 of a number type, found bool");
  CHECK(types_of({"f16[2]", "i64[]"}, "pow(%a, %b)") == "f16[2]");
  CHECK(types_of({"i32[2]"}, "exp(%a)") == "exp: expected operand 0 of a float type, found i32");
  CHECK(types_of({"u8[2]"}, "abs(%a)") == "u8[2]");
  CHECK(types_of({"f32[2]"}, "bit_not(%a)") ==
        "bit_not: expected operand 0 of an integer type, found f32");
  CHECK(types_of({"f32[2]"}, "logical_not(%a)") ==
        "logical_not: expected operand 0 of type bool, found f32");
  CHECK(types_of({"f32[2]"}, "is_inf(%a) {negative=0}") == "bool[2]");
  CHECK(types_of({"f32[2]"}, "is_inf(%a) {negative=2}") ==
        "is_inf: expected 0 or 1 as attribute negative, found another value");
  CHECK(types_of({"f32[2]"}, "cast(%a) {to=\"i8\"}") == "i8[2]");
  CHECK(types_of({"f32[2]"}, "cast(%a) {to=\"int8\"}") ==
        "cast: expected the name of a dtype as attribute to, found \"int8\"");
  CHECK(types_of({"f32[2]"}, "cast(%a) {to=3}") ==
        "cast: expected attribute to as a text, found another type");
  CHECK(types_of({"f32[2]"}, "cast(%a)") == "cast: expected attribute to (a text), found none");
  CHECK(types_of({"bool[2]", "bool[]"}, "equal(%a, %b)") == "bool[2]");
  CHECK(types_of({"i64[2]", "i64[]"}, "less(%a, %b)") == "bool[2]");
  CHECK(types_of({"bool[2]", "bool[]"}, "less(%a, %b)") ==
        "less: expected operand 0 of a number type, found bool");
  CHECK(types_of({"bool[3,1]", "i8[2]", "i8[]"}, "where(%a, %b, %c)") == "i8[3,2]");
  CHECK(types_of({"f32[]", "f32[]", "f32[]"}, "where(%a, %b, %c)") ==
        "where: expected operand 0 of type bool, found f32");
  CHECK(types_of({"f32[]"}, "add(%a)") == "add: expected 2 operands, found 1");
}

TEST_CASE("movement shape rules") {
  CHECK(types_of({"f32[2,3]"}, "reshape(%a) {shape=[3,2]}") == "f32[3,2]");
  CHECK(types_of({"f32[2,3]"}, "reshape(%a) {shape=[5]}") ==
        "reshape: expected a shape with the 6 elements of [2,3], found [5]");
  CHECK(types_of({"f32[1]"}, "reshape(%a) {shape=[-1]}") ==
        "reshape: expected a shape of sizes that are not negative, found [-1]");
  CHECK(types_of({"f32[2,3]"}, "transpose(%a) {perm=[1,0]}") == "f32[3,2]");
  CHECK(types_of({"f32[2,3]"}, "transpose(%a) {perm=[1,1]}") ==
        "transpose: expected a permutation of 2 dimensions, found [1,1]");
  CHECK(types_of({"f32[2,3]"}, "transpose(%a) {perm=[0]}") ==
        "transpose: expected a permutation of 2 dimensions, found [0]");
  CHECK(types_of({"f32[3,1]"}, "broadcast(%a) {shape=[2,3,4]}") == "f32[2,3,4]");
  CHECK(types_of({"f32[3]"}, "broadcast(%a) {shape=[1]}") ==
        "broadcast: expected an operand that broadcasts to [1], found [3]");
  CHECK(types_of({"f32[5]"}, "slice(%a) {starts=[4], sizes=[3], steps=[-2]}") == "f32[3]");
  CHECK(types_of({"f32[5]"}, "slice(%a) {starts=[4], sizes=[4], steps=[-2]}") ==
        "slice: expected a slice within size 5 of dimension 0, found start 4, size 4, step -2");
  CHECK(types_of({"f32[5]"}, "slice(%a) {starts=[0], sizes=[1], steps=[0]}") ==
        "slice: expected steps that are not zero, found [0]");
  CHECK(types_of({"f32[0]"}, "slice(%a) {starts=[0], sizes=[0], steps=[1]}") == "f32[0]");
  CHECK(types_of({"f32[2]", "f32[]"}, "pad(%a, %b) {low=[1], high=[2]}") == "f32[5]");
  CHECK(types_of({"f32[2]", "f32[1]"}, "pad(%a, %b) {low=[1], high=[2]}") ==
        "pad: expected operand 1 of shape [], found [1]");
  CHECK(types_of({"f32[2]", "f32[]"}, "pad(%a, %b) {low=[-1], high=[2]}") ==
        "pad: expected attribute low with 1 elements of at least 0, found [-1]");
  CHECK(types_of({"f32[2,3]", "f32[2,0]"}, "concat(%a, %b) {axis=1}") == "f32[2,3]");
  CHECK(types_of({"f32[2,3]", "f32[1,3]"}, "concat(%a, %b) {axis=1}") ==
        "concat: expected operand 1 of shape [2,3], found [1,3]");
  CHECK(types_of({"f32[2]"}, "concat(%a) {axis=1}") ==
        "concat: expected an axis from 0 to 0, found 1");
  CHECK(types_of({}, "concat() {axis=0}") == "concat: expected 1 or more operands, found 0");
  CHECK(types_of({}, "iota() {axis=1, dtype=\"i32\", shape=[2,3]}") == "i32[2,3]");
}

TEST_CASE("place shape rules") {
  CHECK(types_of({"f32[2,3]"}, "place(%a) {shape=[4,3], starts=[2,0]}") == "f32[4,3]");
  CHECK(types_of({"f32[2,3]", "f32[4,3]"}, "place(%a, %b) {shape=[4,3], starts=[1,0]}") ==
        "f32[4,3]");
  CHECK(types_of({"f32[2,3]"}, "place(%a) {shape=[4,3], starts=[3,0]}") ==
        "place: expected a place within [4,3], found [2,3] at [3,0]");
  CHECK(types_of({"f32[2,3]", "f32[4,4]"}, "place(%a, %b) {shape=[4,3], starts=[1,0]}") ==
        "place: expected operand 1 of shape [4,3], found [4,4]");
}

TEST_CASE("the halves of the gradient of attention: shape rules") {
  const std::string q = "bf16[2,4,70,16]", k = "bf16[2,2,5,16]", v = "bf16[2,2,5,8]";
  const std::string o = "bf16[2,4,70,8]", m = "f32[2,4,70]";
  CHECK(types_of({q, k, v, o, m, m, o},
                 "attention_query_grad(%a, %b, %c, %d, %e, %f, %g) {scale=1.0}") ==
        q + " f32[2,4,128,2]");
  CHECK(types_of({q, k, v, o, m, m, o, "bf16[5]"},
                 "attention_query_grad(%a, %b, %c, %d, %e, %f, %g, %h) {scale=1.0}") ==
        q + " f32[2,4,128,4]");
  CHECK(types_of({q, k, v, o, "f32[2,4,128,2]"},
                 "attention_key_grad(%a, %b, %c, %d, %e) {scale=1.0}") == k + " " + v);
  CHECK(types_of({q, k, v, o, "f32[2,4,70,2]"},
                 "attention_key_grad(%a, %b, %c, %d, %e) {scale=1.0}") ==
        "attention_key_grad: expected operand 4 of shape [2,4,128,2], found [2,4,70,2]");
}

TEST_CASE("indexing shape rules") {
  CHECK(types_of({"f32[5,4]", "i64[2,3]"}, "gather(%a, %b) {axis=0}") == "f32[2,3,4]");
  CHECK(types_of({"f32[5,4]", "i32[]"}, "gather(%a, %b) {axis=1}") == "f32[5]");
  CHECK(types_of({"f32[5,4]", "i32[]"}, "gather(%a, %b) {axis=1, padding=3}") == "f32[5]");
  CHECK(types_of({"f32[5,4]", "i32[]"}, "gather(%a, %b) {axis=1, padding=4}") ==
        "gather: expected attribute padding from 0 to 3, found 4");
  CHECK(types_of({"f32[5,4]", "f32[]"}, "gather(%a, %b) {axis=1}") ==
        "gather: expected operand 1 of type i32 or i64, found f32");
  CHECK(types_of({"f32[5,4]", "i64[5,2]"}, "gather_elements(%a, %b) {axis=1}") == "f32[5,2]");
  CHECK(types_of({"f32[5,4]", "i64[6,2]"}, "gather_elements(%a, %b) {axis=1}") ==
        "gather_elements: expected indices within [5,4] outside axis 1, found [6,2]");
  CHECK(types_of({"f32[2,3,4]", "i64[2,5,1]"}, "gather_nd(%a, %b) {batch_dims=1}") == "f32[2,5,4]");
  CHECK(types_of({"f32[2,3]", "i64[5,3]"}, "gather_nd(%a, %b) {batch_dims=0}") ==
        "gather_nd: expected index tuples of at most 2 elements, found 3");
  CHECK(types_of({"f32[2,3]", "i64[]"}, "gather_nd(%a, %b) {batch_dims=0}") ==
        "gather_nd: expected batch_dims within both ranks, found 0");
  CHECK(types_of({"f32[5,4]", "i64[5,1]"}, "pick(%a, %b) {axis=1}") == "f32[5,1]");
  CHECK(types_of({"f32[5,4]", "i64[5]"}, "pick(%a, %b) {axis=1}") ==
        "pick: expected operand 1 of shape [5,1], found [5]");
  CHECK(types_of({"f32[5,4]", "i64[3]", "f32[3,4]"}, "scatter_add(%a, %b, %c) {axis=0}") ==
        "f32[5,4]");
  CHECK(types_of({"f32[5,4]", "i64[3]", "f16[3,4]"}, "scatter_add(%a, %b, %c) {axis=0}") ==
        "scatter_add: expected updates of type f32, found f16");
  CHECK(types_of({"f32[5]", "i64[3]", "f32[3]"},
                 "scatter_elements(%a, %b, %c) {axis=0, reduction=\"sum\"}") ==
        "scatter_elements: expected reduction none, add, mul, max or min, found \"sum\"");
  CHECK(types_of({"f32[5,4]", "i64[3,1]", "f32[3,4]"},
                 "scatter_nd(%a, %b, %c) {reduction=\"add\"}") == "f32[5,4]");
}

TEST_CASE("reduction shape rules") {
  CHECK(types_of({"f32[2,3,4]"}, "reduce_sum(%a) {axes=[0,2]}") == "f32[1,3,1]");
  CHECK(types_of({"f32[2,3]"}, "reduce_sum(%a) {axes=[1,0]}") ==
        "reduce_sum: expected sorted unique axes below 2, found [1,0]");
  CHECK(types_of({"f32[2,3]"}, "reduce_sum(%a) {axes=[2]}") ==
        "reduce_sum: expected sorted unique axes below 2, found [2]");
  CHECK(types_of({"f32[0,3]"}, "reduce_sum(%a) {axes=[0]}") == "f32[1,3]");
  CHECK(types_of({"f32[0,3]"}, "reduce_max(%a) {axes=[0]}") ==
        "reduce_max: expected at least one element along axis 0, found [0,3]");
  CHECK(types_of({"f32[2,3]"}, "arg_max(%a) {axis=1}") == "i64[2,1]");
  CHECK(types_of({"f32[2,3]"}, "cum_sum(%a) {axis=1, revers=1}") ==
        "cum_sum: expected attributes among axis exclusive reverse , found revers");
  CHECK(types_of({"f32[2,3]"}, "top_k(%a) {axis=1, k=2}") == "f32[2,2] i64[2,2]");
  CHECK(types_of({"f32[2,3]"}, "top_k(%a) {axis=1, k=4}") ==
        "top_k: expected k from 0 to 3, found 4");
}

TEST_CASE("contraction shape rules") {
  CHECK(types_of({"f32[7,1,2,3]", "f32[5,4,3]"}, "matmul(%a, %b) {transpose_b=1}") ==
        "f32[7,5,2,4]");
  CHECK(types_of({"f32[3,2]", "f32[3,4]"}, "matmul(%a, %b) {transpose_a=1}") == "f32[2,4]");
  CHECK(types_of({"f32[2,3]", "f32[4,5]"}, "matmul(%a, %b)") ==
        "matmul: expected equal inner sizes, found 3 of [2,3] and 4 of [4,5]");
  CHECK(types_of({"f32[3]", "f32[3,5]"}, "matmul(%a, %b)") ==
        "matmul: expected operands of rank 2 or more, found [3] and [3,5]");
  CHECK(types_of({"f32[3,2]", "f32[2,3,8]"}, "matmul(%a, %b) {transpose_a=1, packed_columns=9}") ==
        "f32[2,9]");
  CHECK(types_of({"f32[2,3]", "f32[2,4,8]"}, "matmul(%a, %b) {packed_columns=9}") ==
        "matmul: expected equal inner sizes, found [2,3] and panels of [2,4,8]");
  for (const std::string columns : {"8", "17"}) {
    CHECK(types_of({"f32[2,3]", "f32[2,3,8]"}, "matmul(%a, %b) {packed_columns=" + columns + "}") ==
          "matmul: expected panels of " + columns + " columns, found [2,3,8]");
  }
  CHECK(types_of({"bf16[2,3]", "bf16[3,4]"}, "matmul(%a, %b) {result=\"f32\"}") == "f32[2,4]");
  CHECK(types_of({"f64[2,3]", "f64[3,4]"}, "matmul(%a, %b) {result=\"f32\"}") ==
        "matmul: expected result=f32 and operands of type bf16 or f16, found result=f32 and "
        "operands of type f64");
  CHECK(types_of({"f16[2,3]", "f16[3,4]"}, "matmul(%a, %b) {result=\"bf16\"}") ==
        "matmul: expected result=f32 and operands of type bf16 or f16, found result=bf16 and "
        "operands of type f16");
  const std::string one = "{strides=[2], pads=[1,0], dilations=[1], groups=1";
  CHECK(types_of({"f32[2,3,8]", "f32[4,3,3]"}, "conv(%a, %b) " + one + "}") == "f32[2,4,4]");
  CHECK(types_of({"f16[2,3,8]", "f16[4,3,3]"}, "conv(%a, %b) " + one + ", result=\"f32\"}") ==
        "f32[2,4,4]");
  CHECK(types_of({"f32[2,2,8]", "f32[4,3,3]"}, "conv(%a, %b) " + one + "}") ==
        "conv: expected 3 input channels (1 groups of 3), found 2");
  CHECK(types_of({"f32[2,3,1]", "f32[4,3,3]"}, "conv(%a, %b) " + one + "}") ==
        "conv: expected a window of at most 2 elements in spatial dimension 0, found 3");
  CHECK(types_of({"f32[1,2,5,5]", "f32[4,2,3,0]"},
                 "conv(%a, %b) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1}") ==
        "conv: expected a window of at least 1 element in spatial dimension 1, found 0");
  CHECK(types_of({"f32[2,4,4]", "f32[4,3,3]"}, "conv_input_grad(%a, %b) " + one + ", input=[8]}") ==
        "f32[2,3,8]");
  CHECK(types_of({"f32[2,4,4]", "f32[4,3,3]"}, "conv_input_grad(%a, %b) " + one + ", input=[9]}") ==
        "f32[2,3,9]");
  CHECK(types_of({"f32[2,4,4]", "f32[4,3,3]"}, "conv_input_grad(%a, %b) " + one + ", input=[5]}") ==
        "conv_input_grad: expected operand 0 of shape [2,4,2], found [2,4,4]");
  CHECK(types_of({"f32[2,3,8]", "f32[2,4,4]"},
                 "conv_weight_grad(%a, %b) " + one + ", kernel=[3]}") == "f32[4,3,3]");
  const std::string pool = "kernel=[2,2], strides=[2,2], pads=[0,0,0,0], dilations=[1,1]";
  CHECK(types_of({"f32[1,2,5,5]"}, "max_pool(%a) {" + pool + ", output=[3,3]}") == "f32[1,2,3,3]");
  CHECK(types_of({"f32[1,2,5,5]"}, "max_pool(%a) {" + pool + ", output=[3,4]}") ==
        "max_pool: expected windows that start within 5 elements of spatial dimension 1, found 4 "
        "windows");
  CHECK(types_of({"f32[1,2,5,5]", "f32[1,2,2,2]"},
                 "max_pool_grad(%a, %b) {" + pool + ", output=[2,2]}") == "f32[1,2,5,5]");
  CHECK(types_of({"f32[1,2,5,5]"}, "average_pool(%a) {" + pool + ", output=[2,2]}") ==
        "f32[1,2,2,2]");
  CHECK(types_of({"f32[1,2,2,2]"}, "average_pool_grad(%a) {" + pool +
                                       ", output=[2,2], input=[5,5]}") == "f32[1,2,5,5]");
}

TEST_CASE("composition, random and micro-batch shape rules") {
  CHECK(types_of({"f32[2,3]"}, "softmax(%a) {axis=1}") == "f32[2,3]");
  CHECK(types_of({"f16[2,3]"}, "normalize(%a) {axes=[1], epsilon=1e-5}") ==
        "f16[2,3] f16[2,1] f16[2,1]");
  CHECK(types_of({"f16[1,4,2,8]", "f16[1,2,3,8]", "f16[1,2,3,5]", "f16[2,3]"},
                 "attention(%a, %b, %c, %d) {scale=0.5, causal=1}") ==
        "f16[1,4,2,5] f32[1,4,2] f32[1,4,2]");
  CHECK(types_of({"f32[1,4,2,8]", "f32[1,3,3,8]", "f32[1,3,3,5]"},
                 "attention(%a, %b, %c) {scale=0.5}") ==
        "attention: expected key heads that divide the 4 query heads, found 3");
  CHECK(types_of({"f32[1,4,2,8]", "f32[1,2,3,8]", "f32[1,2,3,5]", "f32[4,3]"},
                 "attention(%a, %b, %c, %d) {scale=0.5}") ==
        "attention: expected a mask that broadcasts to [1,4,2,3], found [4,3]");
  CHECK(types_of({"f64[1,1,2,8]", "f64[1,1,3,8]", "f64[1,1,3,5]", "f64[1,1,2,5]", "f64[1,1,2]",
                  "f64[1,1,2]", "f64[1,1,2,5]"},
                 "attention_grad(%a, %b, %c, %d, %e, %f, %g) {scale=0.5}") ==
        "f64[1,1,2,8] f64[1,1,3,8] f64[1,1,3,5]");
  CHECK(types_of({"i64[]", "i64[]"}, "random_normal(%a, %b) {shape=[2,3], stream=4}") ==
        "f32[2,3]");
  CHECK(types_of({"i64[]", "i32[]"}, "random_normal(%a, %b) {shape=[2,3], stream=4}") ==
        "random_normal: expected operand 1 of type i64, found i32");
  CHECK(types_of({"f32[2]", "f32[]"}, "accumulate(%a, %b)") ==
        "accumulate: expected operand 1 of shape [2], found []");
  CHECK(types_of({"f32[2]"}, "stack_micro_batches(%a) {micro_batches=4}") == "f32[4,2]");
  CHECK(types_of({"f32[2]"}, "stack_micro_batches(%a) {micro_batches=0}") ==
        "stack_micro_batches: expected micro_batches of at least 1, found 0");
}
