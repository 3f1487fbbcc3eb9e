// Anchors that the kernels for any GPU compute. The same cases run on an emulated GPU.
#include "gpu/loop_cases.h"

namespace sgtc::testing {
namespace {

std::string n(int64_t value) { return std::to_string(value); }

const std::vector<std::string> kFloats = {"f32", "f64", "bf16", "f16"};

double tolerance_of(const std::string& type) {
  if (type == "bf16") return 1e-2;
  if (type == "f16") return 2e-3;
  if (type == "f32") return 2e-5;
  return type == "f64" ? 1e-13 : 0;
}

LoopCase case_of(const std::string& name, const std::string& text, double tolerance,
                 int64_t multiprocessors = 132) {
  LoopCase result{name, text, tolerance};
  result.multiprocessors = multiprocessors;
  return result;
}

// One processor is filled by few tiles, which then are large; many share the depth of a tile.
void add_matmul(std::vector<LoopCase>& cases, const std::string& a, const std::string& b,
                const std::string& attributes, const std::string& type = "f32") {
  for (const int64_t multiprocessors : {1, 132}) {
    cases.push_back(case_of("matmul " + type + a + b + attributes + " on " + n(multiprocessors),
                            "feed %a: " + type + a + "\nfeed %b: " + type + b +
                                "\n%y = matmul(%a, %b) {" + attributes + "}\noutput \"y\" %y",
                            2 * tolerance_of(type), multiprocessors));
  }
}

void add_matmuls(std::vector<LoopCase>& cases) {
  add_matmul(cases, "[5,7]", "[7,3]", "");
  add_matmul(cases, "[130,50]", "[50,140]", "");
  add_matmul(cases, "[7,70]", "[7,133]", "transpose_a=1");
  add_matmul(cases, "[200,40]", "[150,40]", "transpose_b=1");
  add_matmul(cases, "[3,5,4]", "[2,3,6,5]", "transpose_a=1, transpose_b=1");
  add_matmul(cases, "[2,1,4,5]", "[3,5,6]", "");
  add_matmul(cases, "[2,3,4,5]", "[5,6]", "");
  add_matmul(cases, "[1,3000]", "[3000,1]", "");
  add_matmul(cases, "[1100,65]", "[1100,64]", "transpose_a=1");
  add_matmul(cases, "[0,3]", "[3,4]", "");
  add_matmul(cases, "[4,0]", "[0,3]", "");
  for (const std::string type : {"f64", "bf16", "f16", "i8", "i16", "i32", "i64", "u8", "u64"}) {
    add_matmul(cases, "[70,300]", "[300,65]", "", type);
    add_matmul(cases, "[2,9,17]", "[2,9,21]", "transpose_a=1", type);
  }
}

struct ConvCase {
  std::string x, w, y, input, kernel, window;
};

const std::vector<ConvCase>& convolutions() {
  static const std::vector<ConvCase> kCases = {
      {"[2,4,9,8]", "[6,2,3,2]", "[2,6,5,8]", "[9,8]", "[3,2]",
       "strides=[2,1], pads=[1,0,1,2], dilations=[1,2], groups=2"},
      {"[1,3,30]", "[5,3,4]", "[1,5,30]", "[30]", "[4]",
       "strides=[1], pads=[2,1], dilations=[1], groups=1"},
      {"[1,2,4,5,6]", "[3,2,2,3,2]", "[1,3,2,3,6]", "[4,5,6]", "[2,3,2]",
       "strides=[1,2,1], pads=[0,1,0,0,1,1], dilations=[2,1,1], groups=1"},
      {"[3,70,6,6]", "[66,70,3,3]", "[3,66,6,6]", "[6,6]", "[3,3]",
       "strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1"},
      {"[3,8,7,7]", "[8,1,3,3]", "[3,8,4,4]", "[7,7]", "[3,3]",
       "strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=8"}};
  return kCases;
}

void add_convolutions(std::vector<LoopCase>& cases, const std::string& type,
                      int64_t multiprocessors) {
  for (const ConvCase& c : convolutions()) {
    const std::string name = type + c.x + c.w + " on " + n(multiprocessors);
    const std::string x = "feed %x: " + type + c.x + "\n", w = "feed %w: " + type + c.w + "\n",
                      y = "feed %y: " + type + c.y + "\n";
    // Sums of some hundred products of numbers up to 4.
    const double tolerance = 4 * tolerance_of(type);
    cases.push_back(case_of("conv " + name,
                            x + w + "%r = conv(%x, %w) {" + c.window + "}\noutput \"r\" %r",
                            tolerance, multiprocessors));
    cases.push_back(case_of("conv_input_grad " + name,
                            y + w + "%r = conv_input_grad(%y, %w) {" + c.window +
                                ", input=" + c.input + "}\noutput \"r\" %r",
                            tolerance, multiprocessors));
    cases.push_back(case_of("conv_weight_grad " + name,
                            x + y + "%r = conv_weight_grad(%x, %y) {" + c.window +
                                ", kernel=" + c.kernel + "}\noutput \"r\" %r",
                            tolerance, multiprocessors));
  }
}

void add_pools(std::vector<LoopCase>& cases, const std::string& type) {
  const std::string window = "strides=[2,1], pads=[1,0,1,2], dilations=[1,2]";
  const std::string x = "feed %x: " + type + "[2,3,9,8]\n", d = "feed %d: " + type + "[2,3,5,8]\n";
  const std::string kernel = ", kernel=[3,2], output=[5,8]}\n";
  cases.push_back(case_of("max_pool " + type,
                          x + d + "%y = max_pool(%x) {" + window + kernel +
                              "%g = max_pool_grad(%x, %d) {" + window + kernel +
                              "output \"y\" %y\noutput \"g\" %g",
                          tolerance_of(type)));
  for (const int64_t include : {0, 1}) {
    const std::string attributes = "{" + window + ", count_include_pad=" + n(include);
    cases.push_back(case_of("average_pool " + type + n(include),
                            x + d + "%y = average_pool(%x) " + attributes + kernel +
                                "%g = average_pool_grad(%d) " + attributes + ", input=[9,8]" +
                                kernel + "output \"y\" %y\noutput \"g\" %g",
                            tolerance_of(type)));
  }
}

void add_scatters(std::vector<LoopCase>& cases, const std::string& type) {
  // 16-bit sums are rounded once here, in the interpreter each time.
  const double tolerance = 4 * tolerance_of(type);
  cases.push_back(case_of("scatter_add " + type,
                          "feed %x: " + type + "[2,5,130]\nfeed %i: i64[3,4]\nfeed %u: " + type +
                              "[2,3,4,130]\n%y = scatter_add(%x, %i, %u) {axis=1}\n"
                              "output \"y\" %y",
                          tolerance));
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    cases.push_back(case_of("scatter_elements " + type + reduction,
                            "feed %x: " + type + "[4,5,6]\nfeed %i: i32[3,7,5]\nfeed %u: " + type +
                                "[3,7,5]\n%y = scatter_elements(%x, %i, %u) {axis=1, reduction=\"" +
                                reduction + "\"}\noutput \"y\" %y",
                            2 * tolerance));
    cases.push_back(case_of("scatter_nd " + type + reduction,
                            "feed %x: " + type + "[4,5,70]\nfeed %i: i64[6,2]\nfeed %u: " + type +
                                "[6,70]\n%y = scatter_nd(%x, %i, %u) {reduction=\"" + reduction +
                                "\"}\noutput \"y\" %y",
                            2 * tolerance));
  }
}

// Rows that many indices name, lists that fill more than once, several blocks of rows.
void add_long_scatters(std::vector<LoopCase>& cases) {
  for (const int64_t multiprocessors : {1, 132}) {
    const std::string name = " on " + n(multiprocessors);
    cases.push_back(case_of("scatter_add of many" + name,
                            "feed %x: f32[50,40]\nfeed %i: i64[5000]\nfeed %u: f32[5000,40]\n"
                            "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y",
                            1e-5, multiprocessors));
    cases.push_back(case_of("scatter_nd of many" + name,
                            "feed %x: f32[4,50,3]\nfeed %i: i64[5000,2]\nfeed %u: f32[5000,3]\n"
                            "%y = scatter_nd(%x, %i, %u) {reduction=\"none\"}\noutput \"y\" %y",
                            0, multiprocessors));
    cases.push_back(case_of("scatter_elements of a line" + name,
                            "feed %x: f32[3000]\nfeed %i: i64[500]\nfeed %u: f32[500]\n"
                            "%y = scatter_elements(%x, %i, %u) {axis=0, reduction=\"add\"}\n"
                            "output \"y\" %y",
                            1e-5, multiprocessors));
  }
  cases.push_back(case_of("scatter_add of nothing",
                          "feed %x: f32[5,7]\nfeed %i: i64[0]\nfeed %u: f32[0,7]\n"
                          "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y",
                          0));
}

void add_scans(std::vector<LoopCase>& cases, const std::string& type) {
  for (const std::string axis : {"1", "2"}) {
    const std::string x = "feed %x: " + type + "[3,20,45]\n";
    for (const std::string flags :
         {"", ", exclusive=1", ", reverse=1", ", exclusive=1, reverse=1"}) {
      cases.push_back(case_of("cum_sum " + type + axis + flags,
                              x + "%y = cum_sum(%x) {axis=" + axis + flags + "}\noutput \"y\" %y",
                              tolerance_of(type)));
    }
    for (const int64_t last : {0, 1}) {
      const std::string attributes = "{axis=" + axis + ", select_last=" + n(last) + "}\n";
      cases.push_back(case_of("extrema " + type + axis + n(last),
                              x + "%y = arg_max(%x) " + attributes + "%z = arg_min(%x) " +
                                  attributes + "output \"y\" %y\noutput \"z\" %z",
                              0));
    }
    for (const int64_t k : {0, 1, 7, 20}) {
      const std::string attributes = "{axis=" + axis + ", k=" + n(k);
      cases.push_back(case_of("top_k " + type + axis + n(k),
                              x + "%y, %i = top_k(%x) " + attributes + ", largest=1}\n" +
                                  "%z, %j = top_k(%x) " + attributes + ", largest=0}\n" +
                                  "output \"y\" %y\noutput \"i\" %i\noutput \"z\" %z\n"
                                  "output \"j\" %j",
                              0));
    }
  }
}

struct AttentionCase {
  std::string q, k, v, y, mask, attributes;
};

const std::vector<AttentionCase>& attentions() {
  static const std::vector<AttentionCase> kCases = {
      {"[1,2,100,4]", "[1,2,100,4]", "[1,2,100,4]", "[1,2,100,4]", "[2,100,1]", "causal=1"},
      {"[2,4,50,16]", "[2,4,70,16]", "[2,4,70,24]", "[2,4,50,24]", "", "causal=0"},
      {"[1,4,130,8]", "[1,2,130,8]", "[1,2,130,8]", "[1,4,130,8]", "", "causal=1"},
      {"[2,2,9,20]", "[2,1,100,20]", "[2,1,100,150]", "[2,2,9,150]", "[2,1,1,100]", "causal=0"},
      {"[1,2,7,5]", "[1,2,11,5]", "[1,2,11,3]", "[1,2,7,3]", "[7,11]", "causal=1"},
      {"[1,2,7,200]", "[1,2,11,200]", "[1,2,11,3]", "[1,2,7,3]", "", "causal=0"},
      {"[2,1,0,4]", "[2,1,3,4]", "[2,1,3,4]", "[2,1,0,4]", "", "causal=0"},
      {"[2,8,3,4]", "[2,8,0,4]", "[2,8,0,5]", "[2,8,3,5]", "", "causal=0"}};
  return kCases;
}

void add_attentions(std::vector<LoopCase>& cases, const std::string& type) {
  const auto feed = [&](const std::string& name, const std::string& shape) {
    return shape.empty() ? "" : "feed %" + name + ": " + type + shape + "\n";
  };
  for (const AttentionCase& c : attentions()) {
    const std::string mask = c.mask.empty() ? "" : ", %m";
    const std::string end = mask + ") {scale=0.25, " + c.attributes + "}\n";
    // Without keys there is no maximum.
    const bool is_empty = c.k.find(",0,") != std::string::npos;
    const std::string statistics = is_empty ? "" : "output \"max\" %max\noutput \"sum\" %sum\n";
    cases.push_back(case_of("attention " + type + c.q + c.k + c.v,
                            feed("q", c.q) + feed("k", c.k) + feed("v", c.v) + feed("d", c.y) +
                                feed("m", c.mask) + "%y, %max, %sum = attention(%q, %k, %v" + end +
                                "%dq, %dk, %dv = attention_grad(%q, %k, %v, %y, %max, %sum, %d" +
                                end + "output \"y\" %y\n" + statistics +
                                "output \"dq\" %dq\noutput \"dk\" %dk\noutput \"dv\" %dv",
                            4 * tolerance_of(type)));
  }
}

void add_bad_indices(std::vector<LoopCase>& cases) {
  LoopCase scatter = case_of("scatter_add with a bad index",
                             "feed %x: f32[3,7]\nconstant %i: i64[2] = [1, 3]\nfeed %u: f32[2,7]\n"
                             "%y = scatter_add(%x, %i, %u) {axis=0}\noutput \"y\" %y",
                             0);
  scatter.status = {1, 3, 3};
  cases.push_back(scatter);
}

}  // namespace

std::vector<LoopCase> checked_anchors() {
  std::vector<LoopCase> cases;
  add_matmuls(cases);
  for (const std::string& type : kFloats) {
    add_convolutions(cases, type, 132);
    add_pools(cases, type);
  }
  add_convolutions(cases, "f32", 1);
  add_convolutions(cases, "bf16", 1);
  for (const std::string type : {"f32", "f64", "bf16", "i64", "u8"}) {
    add_scatters(cases, type);
    add_scans(cases, type);
  }
  add_long_scatters(cases);
  add_bad_indices(cases);
  return cases;
}

std::vector<LoopCase> checked_generic_attentions() {
  std::vector<LoopCase> cases;
  for (const std::string& type : kFloats) add_attentions(cases, type);
  return cases;
}

std::vector<LoopCase> checked_mma_matmuls() {
  std::vector<LoopCase> cases;
  // Odd sizes wherever rows stay multiples of 8 elements; the long depth is split.
  for (const std::string depth : {"72", "1992"}) {
    add_matmul(cases, "[301," + depth + "]", "[" + depth + ",200]", "", "f16");
    add_matmul(cases, "[301," + depth + "]", "[203," + depth + "]", "transpose_b=1", "f16");
    add_matmul(cases, "[" + depth + ",304]", "[203," + depth + "]", "transpose_a=1, transpose_b=1",
               "f16");
  }
  add_matmul(cases, "[77,304]", "[77,200]", "transpose_a=1", "f16");
  add_matmul(cases, "[2,1,150,72]", "[3,72,136]", "", "f16");
  add_matmul(cases, "[2,1,150,72]", "[3,72,136]", "", "bf16");
  return cases;
}

std::vector<LoopCase> measured_anchors() {
  const auto matmul = [](const std::string& type, const std::string& a, const std::string& b,
                         const std::string& attributes) {
    return case_of("matmul " + type + a + b + attributes,
                   "feed %a: " + type + a + "\nfeed %b: " + type + b + "\n%y = matmul(%a, %b) {" +
                       attributes + "}\noutput \"y\" %y",
                   0);
  };
  std::vector<LoopCase> cases;
  for (const std::string type : {"f32", "f16", "f64"}) {
    cases.push_back(matmul(type, "[4096,4096]", "[4096,4096]", ""));
  }
  for (const std::string type : {"f32", "f16"}) {
    cases.push_back(matmul(type, "[32768,768]", "[768,3072]", ""));
    cases.push_back(matmul(type, "[32768,768]", "[3072,768]", "transpose_b=1"));
    cases.push_back(matmul(type, "[32768,768]", "[32768,3072]", "transpose_a=1"));
  }
  cases.push_back(matmul("f32", "[256,784]", "[784,512]", ""));
  const std::string x = "feed %x: f32[64,64,56,56]\n", w = "feed %w: f32[128,64,3,3]\n",
                    y = "feed %y: f32[64,128,56,56]\n",
                    window = "strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1";
  cases.push_back(
      case_of("conv f32", x + w + "%r = conv(%x, %w) {" + window + "}\noutput \"r\" %r", 0));
  cases.push_back(case_of(
      "conv_input_grad f32",
      y + w + "%r = conv_input_grad(%y, %w) {" + window + ", input=[56,56]}\noutput \"r\" %r", 0));
  cases.push_back(case_of(
      "conv_weight_grad f32",
      x + y + "%r = conv_weight_grad(%x, %y) {" + window + ", kernel=[3,3]}\noutput \"r\" %r", 0));
  cases.push_back(case_of("scatter_add f32",
                          "feed %x: f32[50257,768]\nfeed %i: i64[32768]\n"
                          "feed %u: f32[32768,768]\n%y = scatter_add(%x, %i, %u) {axis=0}\n"
                          "output \"y\" %y",
                          0));
  return cases;
}

}  // namespace sgtc::testing
