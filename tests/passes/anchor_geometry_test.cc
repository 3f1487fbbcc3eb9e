// How the work of written kernels is cut into blocks on a CPU.
#include "passes/anchor_geometry.h"

#include "ir/graph.h"
#include "support/catch.h"

using namespace sgtc;

namespace {

AnchorGeometry geometry_of(const std::string& text) {
  const Graph graph = parse_graph(text);
  const Node& node = graph.nodes.back();
  std::vector<TensorType> operands;
  for (const ValueId id : node.operands) operands.push_back(graph.type(id));
  return anchor_geometry(node.op, node.attributes, operands, {graph.type(node.results[0])});
}

AnchorGeometry product(const std::string& a, const std::string& b) {
  return geometry_of("feed %a: f32" + a + "\nfeed %b: f32" + b +
                     "\n%y = matmul(%a, %b)\noutput \"y\" %y");
}

}  // namespace

TEST_CASE("blocks of a product are of nearly equal size") {
  const AnchorGeometry two_rows = product("[256,768]", "[768,2304]");
  CHECK(two_rows.block_rows == 132);
  CHECK(two_rows.block_columns == 128);
  CHECK(two_rows.blocks == 2 * 18);
  CHECK(product("[1024,768]", "[768,3072]").block_rows == 180);
  CHECK(product("[4000,768]", "[768,136]").block_columns == 96);
}

TEST_CASE("blocks of a gradient of weights are of nearly equal size") {
  const AnchorGeometry geometry = geometry_of(
      "feed %x: f32[8,3,224,224]\nfeed %dy: f32[8,64,112,112]\n%dw = conv_weight_grad(%x, %dy) "
      "{kernel=[7,7], strides=[2,2], pads=[3,3,3,3], dilations=[1,1], groups=1}\n"
      "output \"dw\" %dw");
  CHECK(geometry.block_rows == 32);
  CHECK(geometry.blocks == 2);
}

TEST_CASE(
    "a gradient of weights has as many channels at a time as a large window leaves room for") {
  const auto channels = [](const std::string& kernel, const std::string& size) {
    return geometry_of("feed %x: f32[2,64,60,60]\nfeed %dy: f32[2,64," + size + "]\n" +
                       "%dw = conv_weight_grad(%x, %dy) {kernel=" + kernel +
                       ", strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1}\n"
                       "output \"dw\" %dw");
  };
  CHECK(channels("[3,3]", "58,58").block_columns == 16);
  CHECK(channels("[7,7]", "54,54").block_columns == 13);
  CHECK(channels("[25,25]", "36,36").block_columns == 1);
  CHECK(channels("[25,25]", "36,36").box[0] == 1);
  CHECK(channels("[26,26]", "35,35").box[0] == 0);
}
