// The launches of attention on Hopper.
#include <cstring>

#include "attention/sm_90a/schedule.h"
#include "passes/form_kernels.h"
#include "passes/fuse.h"
#include "support/catch.h"

using namespace sgtc;
using namespace sgtc::kernels;

namespace {

KernelSpec kernel_of(const std::string& text, Op op) {
  const Graph graph = parse_graph(text);
  for (const Group& group : fuse(graph, {}, kHopperTarget)) {
    if (group.kind == Group::Kind::kAnchor && graph.node(group.anchor).op == op) {
      return form_kernel(graph, group, 0, kHopperTarget);
    }
  }
  FAIL("no such kernel");
  return {};
}

std::string shape(int64_t heads, int64_t sequence, int64_t size) {
  return "bf16[2," + std::to_string(heads) + "," + std::to_string(sequence) + "," +
         std::to_string(size) + "]";
}

// Attention of 6 heads, 3 of them with keys.
KernelSpec attention(int64_t queries, int64_t keys, int64_t size, const std::string& mask = "",
                     int64_t value_size = 0) {
  const std::string operands = mask.empty() ? "(%q, %k, %v)" : "(%q, %k, %v, %mask)";
  return kernel_of("feed %q: " + shape(6, queries, size) + "\nfeed %k: " + shape(3, keys, size) +
                       "\nfeed %v: " + shape(3, keys, value_size == 0 ? size : value_size) + "\n" +
                       (mask.empty() ? "" : "feed %mask: bf16" + mask + "\n") +
                       "%o, %m, %s = attention" + operands +
                       " {scale=0.5, causal=1}\noutput \"o\" %o",
                   Op::kAttention);
}

std::string gradient_text(const std::string& mask) {
  const std::string q = shape(6, 100, 64), k = shape(3, 70, 64);
  const std::string last = mask.empty() ? "" : ", %mask";
  return "feed %q: " + q + "\nfeed %k: " + k + "\nfeed %v: " + k + "\nfeed %o: " + q +
         "\nfeed %g: " + q + "\nfeed %m: f32[2,6,100]\nfeed %s: f32[2,6,100]\n" +
         (mask.empty() ? "" : "feed %mask: bf16" + mask + "\n") +
         "%dq, %t = attention_query_grad(%q, %k, %v, %o, %m, %s, %g" + last +
         ") {scale=0.5}\n%dk, %dv = attention_key_grad(%q, %k, %v, %g, %t" + last +
         ") {scale=0.5}\noutput \"dq\" %dq\noutput \"dk\" %dk\noutput \"dv\" %dv";
}

AttentionSm90aShape shape_of(const KernelSpec& spec) {
  AttentionSm90aShape result = {};
  REQUIRE(spec.entry.shape.size() * sizeof(int64_t) == sizeof(result));
  std::memcpy(&result, spec.entry.shape.data(), sizeof(result));
  return result;
}

std::string name_of(const KernelSpec& spec) {
  const std::string prefix = "sgtc_attention_sm_90a_";
  REQUIRE(spec.entry.name.find(prefix) == 0);
  return spec.entry.name.substr(prefix.size());
}

bool is_null(const TensorPointer& pointer) { return pointer.kind == TensorPointer::Kind::kNull; }

}  // namespace

TEST_CASE("the form of attention follows from sizes and mask") {
  CHECK(name_of(attention(300, 300, 64)) == "d64_wide");
  CHECK(name_of(attention(100, 300, 64)) == "d64");
  CHECK(name_of(attention(300, 300, 32)) == "d64_wide");
  CHECK(name_of(attention(300, 300, 128)) == "d128");
  CHECK(name_of(attention(300, 300, 80)) == "d128");
  CHECK(name_of(attention(300, 300, 64, "", 96)) == "d128");
  CHECK(name_of(attention(300, 300, 64, "[2,1,1,300]")) == "d64_masked");
  CHECK(name_of(attention(300, 300, 128, "[300]")) == "d128_masked");
}

TEST_CASE("an attention's constants, maps and arguments") {
  const KernelSpec spec = attention(300, 200, 80, "[6,1,200]", 40);
  const AttentionSm90aShape s = shape_of(spec);
  CHECK(s.heads == 6);
  CHECK(s.key_heads == 3);
  CHECK(s.queries == 300);
  CHECK(s.keys == 200);
  CHECK(s.key_size == 80);
  CHECK(s.value_size == 40);
  CHECK(s.causal == 1);
  CHECK(s.scale == 0.5);
  CHECK(std::vector<int64_t>(s.mask_strides, s.mask_strides + 3) ==
        std::vector<int64_t>{0, 200, 0});
  CHECK(spec.launch.threads == attention_threads(kAttention128));
  CHECK(spec.launch.shared_bytes == attention_shared_bytes(kAttention128));
  CHECK(spec.launch.registers == kAttention128.registers);
  REQUIRE(spec.launch.tensor_maps.size() == 3);
  CHECK(spec.launch.tensor_maps[0].box == std::vector<int64_t>{64, 64, 1, 1});
  CHECK(spec.launch.tensor_maps[2].sizes == std::vector<int64_t>{40, 200, 3, 2});
  CHECK(spec.launch.tensor_maps[2].box == std::vector<int64_t>{64, kAttention128.keys, 1, 1});
  // Maps of q, k and v, the list of work, maximum, sum and mask.
  REQUIRE(spec.entry.tensors.size() * sizeof(void*) == sizeof(AttentionSm90aTensors));
  CHECK(spec.entry.tensors[4].index == spec.result_arguments[1]);
  CHECK(spec.entry.tensors[6].index == spec.operand_arguments[3]);
  CHECK(spec.arguments.back().kind == KernelArgument::Kind::kTable);
  REQUIRE(spec.table != nullptr);
  CHECK(spec.table->bytes().size() ==
        static_cast<size_t>(s.rounds * spec.blocks) * sizeof(AttentionItem));
}

TEST_CASE("few heads do not fill all multiprocessors") {
  CHECK(attention(300, 300, 128).blocks == 2 * 6 * 3);
  CHECK(attention(3000, 300, 128).blocks == 132);
  CHECK(is_null(attention(300, 300, 128).entry.tensors[6]));
}

TEST_CASE("the halves of the gradient hand terms from one to the other") {
  const std::string mask = GENERATE("", "[2,1,1,70]");
  const bool has_mask = !mask.empty();
  const KernelSpec queries = kernel_of(gradient_text(mask), Op::kAttentionQueryGrad);
  const KernelSpec keys = kernel_of(gradient_text(mask), Op::kAttentionKeyGrad);
  CHECK(name_of(queries) == (has_mask ? "query_gradient_d64_masked" : "query_gradient_d64"));
  CHECK(name_of(keys) == (has_mask ? "key_gradient_d64_masked" : "key_gradient_d64"));
  CHECK(queries.launch.shared_bytes ==
        attention_gradient_shared_bytes(kQueryGradient64, 3, has_mask));
  CHECK(keys.launch.shared_bytes == attention_gradient_shared_bytes(kKeyGradient64, 2, has_mask));
  CHECK(queries.launch.tensor_maps.size() == 5);
  CHECK(keys.launch.tensor_maps.size() == 4);
  for (const KernelSpec* spec : {&queries, &keys}) {
    REQUIRE(spec->entry.tensors.size() * sizeof(void*) == sizeof(AttentionGradientSm90aTensors));
    CHECK(is_null(spec->entry.tensors[9]) != has_mask);
  }
  CHECK(queries.entry.tensors[8].index == queries.result_arguments[1]);
  CHECK(keys.entry.tensors[8].index == keys.operand_arguments[4]);
  // The tensors of the output, maximum and sum are the first half's alone.
  CHECK_FALSE(is_null(queries.entry.tensors[3]));
  CHECK(is_null(keys.entry.tensors[3]));
}
