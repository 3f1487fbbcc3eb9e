#include "ir/graph.h"

#include <limits>

#include "ir/clone.h"
#include "support/catch.h"
#include "support/diagnostics.h"

using namespace sgtc;

TEST_CASE("shapes count, stride and broadcast") {
  CHECK(element_count({}) == 1);
  CHECK(element_count({2, 3}) == 6);
  CHECK(element_count({int64_t{1} << 40, 0, int64_t{1} << 40}) == 0);
  CHECK_THROWS_AS(element_count({int64_t{1} << 40, int64_t{1} << 40}), Error);
  CHECK(row_major_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(to_string(Shape{2, 3}) == "[2,3]");
  CHECK(to_string(Shape{}) == "[]");
  Shape result;
  REQUIRE(broadcast_shapes({4, 1, 3}, {2, 1}, &result));
  CHECK(result == Shape{4, 2, 3});
  REQUIRE(broadcast_shapes({0, 3}, {1}, &result));
  CHECK(result == Shape{0, 3});
  CHECK_FALSE(broadcast_shapes({2}, {3}, &result));
}

TEST_CASE("literals convert, saturate and round") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {300, -300, nan, inf, 1.9};
  const auto bytes = make_literal(DType::kInt8, {5}, values);
  CHECK(bytes->as_int(0) == 127);
  CHECK(bytes->as_int(1) == -128);
  CHECK(bytes->as_int(2) == 0);
  CHECK(bytes->as_int(3) == 127);
  CHECK(bytes->as_int(4) == 1);
  CHECK(make_literal(DType::kBool, {5}, values)->as_double(2) == 1);
  CHECK(make_literal(DType::kUInt64, {5}, values)->as_double(3) == 0x1p64);
  CHECK(make_literal(DType::kInt64, {5}, values)->as_int(3) == INT64_MAX);
  CHECK(scalar_literal(DType::kFloat16, 65520)->as_double(0) == inf);
  CHECK(scalar_literal(DType::kFloat32, 1e30)->as_int(0) == INT64_MAX);
  CHECK(scalar_literal(DType::kFloat32, 0.1)->as_double(0) == 0.1f);
}

TEST_CASE("a literal may view bytes of another owner, which it keeps and never changes") {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3});
  const auto bytes = std::as_bytes(std::span<const float>(*owner));
  Literal view(DType::kFloat32, {3}, bytes, owner);
  CHECK(owner.use_count() == 2);
  CHECK(view.as_double(2) == 3);
  CHECK_THROWS_AS(view.mutable_bytes(), InternalError);
  CHECK_THROWS_AS(Literal(DType::kFloat32, {4}, bytes, owner), InternalError);
}

TEST_CASE("attributes have types and defaults") {
  const Attributes attributes = {{"axis", int64_t{1}}, {"scale", 0.5}, {"to", std::string("f32")}};
  CHECK(attributes.integer("axis") == 1);
  CHECK(attributes.real("scale") == 0.5);
  CHECK(attributes.text("to") == "f32");
  CHECK(attributes.integer_or("k", 7) == 7);
  CHECK(attributes.real_or("epsilon", 1.5) == 1.5);
  CHECK_THROWS_AS(attributes.integer("scale"), InternalError);
  CHECK_THROWS_AS(attributes.integers("axes"), InternalError);
}

TEST_CASE("names that are taken get a suffix") {
  Graph graph;
  graph.add_feed("x", {DType::kFloat32, {2}});
  CHECK(graph.value(graph.add_scalar(DType::kFloat32, 1)).name == "c");
  CHECK(graph.value(graph.add_scalar(DType::kFloat32, 1)).name == "c_1");
  CHECK(graph.value(graph.add(Op::kNeg, {0}, {}, "x")).name == "x_1");
  CHECK(graph.value(graph.add(Op::kNeg, {0})).name == "neg");
  CHECK(graph.value(graph.add(Op::kNeg, {0})).name == "neg_1");
  CHECK(graph.find("neg_1") != kNone);
  CHECK(graph.find("neg_2") == kNone);
}

TEST_CASE("appended nodes take phase, id and sources of the context") {
  Graph graph;
  const ValueId x = graph.add_feed("x", {DType::kFloat32, {2}});
  graph.add(Op::kNeg, {x});
  graph.context() = {Phase::kBackward, 40, {"node"}};
  const ValueId y = graph.add(Op::kNeg, {x});
  CHECK(graph.producer(y)->phase == Phase::kBackward);
  CHECK(graph.producer(y)->id == 40);
  CHECK(graph.producer(y)->sources == std::vector<std::string>{"node"});
  CHECK(graph.producer(x) == nullptr);
  graph.context() = {};
  CHECK(graph.producer(graph.add(Op::kNeg, {x}))->id == 41);
}

TEST_CASE("a control value is created once and known by name") {
  Graph graph;
  const ValueId rate = graph.control("learning_rate");
  CHECK(graph.control("learning_rate") == rate);
  CHECK(graph.type(rate) == TensorType{DType::kFloat32, {}});
  CHECK(graph.type(graph.control("step")) == TensorType{DType::kInt64, {}});
  CHECK_THROWS_AS(graph.control("rate"), InternalError);
}

TEST_CASE("users are listed in execution order, once per operand position") {
  const Graph graph = parse_graph("feed %x: f32[]\n%y = mul(%x, %x)\n%z = add(%y, %x)");
  const auto users = users_of(graph);
  CHECK(users[0] == Users{0, 0, 1});
  CHECK(users[static_cast<size_t>(graph.find("y"))] == Users{1});
  CHECK(users[static_cast<size_t>(graph.find("z"))].empty());
}

TEST_CASE("uses are counted among operands, outputs and updates") {
  const Graph graph = parse_graph(
      "state parameter %w: f32[] = zero\n%y = mul(%w, %w)\noutput \"y\" %y\nupdate %w = %y");
  CHECK(count_uses(graph) == std::vector<int64_t>{2, 2});
}

TEST_CASE("of many values each is found by its name") {
  Graph graph;
  for (int i = 0; i < 300; ++i) graph.add_feed("x" + std::to_string(i % 100), {});
  CHECK(graph.find("x7") == 7);
  CHECK(graph.find("x7_1") == 107);
  CHECK(graph.find("x99_2") == 299);
  CHECK(graph.find("x100") == kNone);
  const Graph copy = graph;
  graph.add_feed("x100", {});
  CHECK(graph.find("x100") == 300);
  CHECK(copy.find("x100") == kNone);
}

TEST_CASE("sources are added once") {
  Sources sources = {"a", "b"};
  const Sources copy = sources;
  sources.add({"b", "c"});
  CHECK(sources == Sources{"a", "b", "c"});
  CHECK(copy == Sources{"a", "b"});
}

TEST_CASE("a clone has the same text") {
  const std::string text = R"(graph "g" rows 2 micro_batches 3
feed %x: f32[2]
state parameter %w: f32[2] = literal [1, 2]
state accumulator %g: f32[2] = zero
constant %c: f32[] = [2]
%y: f32[2] = mul(%x, %w) #5 "a" "b"
%v: f32[1], %i: i64[1] = top_k(%y) {axis=0, k=1} #6
%t: f32[2] = accumulate(%g, %y) @backward #9
%n: f32[2] = sub(%w, %t) @update #7
output "v" %v
update %w = %n
)";
  const Graph graph = parse_graph(text);
  Cloner cloner(graph);
  for (const Node& node : graph.nodes) cloner.clone(node);
  Graph clone = cloner.finish();
  CHECK(to_text(clone) == text);
  CHECK(clone.next_id() == 10);
}

TEST_CASE("a cloner replaces values and refuses those it does not know") {
  const Graph graph = parse_graph("feed %x: f32[2]\n%y = neg(%x)\n%z = neg(%y)\noutput \"z\" %z");
  Cloner cloner(graph);
  CHECK_THROWS_AS(cloner[graph.find("y")], InternalError);
  cloner.inherit(graph.nodes[0]);
  cloner.replace(graph.find("y"), cloner.target().add(Op::kAbs, {cloner[0]}));
  cloner.clone(graph.nodes[1]);
  CHECK(to_text(cloner.finish()) ==
        "graph \"\" rows 0 micro_batches 1\nfeed %x: f32[2]\n%abs: f32[2] = abs(%x) #1\n"
        "%z: f32[2] = neg(%abs) #2\noutput \"z\" %z\n");
}

TEST_CASE("a cloner leaves out leaves that are not kept") {
  const Graph graph = parse_graph(
      "feed %x: f32[2]\nconstant %c: f32[] = [1]\n"
      "state moment %m: f32[] = zero\noutput \"x\" %x");
  CHECK(to_text(Cloner(graph, {true, false, false}).finish()) ==
        "graph \"\" rows 0 micro_batches 1\nfeed %x: f32[2]\noutput \"x\" %x\n");
}
