// Loop kernels against the interpreter.
#include "codegen/run_graph.h"

using namespace sgtc;
using namespace sgtc::test;

namespace {

std::string n(int64_t value) { return std::to_string(value); }

}  // namespace

TEST_CASE("elementwise chains of any length") {
  for (int64_t size : {0, 1, 15, 16, 17, 33, 1000, 40000}) {
    check_text("feed %x: f32[" + n(size) + "]\nfeed %y: f32[" + n(size) +
               "]\n%s = add(%x, %y)\n%m = mul(%s, %x)\n%t = tanh(%m)\n%z = sub(%t, %y)\n"
               "output \"z\" %z\noutput \"m\" %m");
  }
}

TEST_CASE("broadcasts along every axis") {
  for (int64_t columns : {1, 3, 16, 37}) {
    check_text("feed %x: f32[5," + n(columns) + "]\nfeed %row: f32[" + n(columns) +
               "]\nfeed %column: f32[5,1]\nfeed %one: f32[]\n%a = add(%x, %row)\n"
               "%b = mul(%a, %column)\n%c = max(%b, %one)\noutput \"c\" %c");
  }
}

TEST_CASE("transposes, slices, pads and concatenations") {
  check_text(
      "feed %x: f32[3,5,7]\n%t = transpose(%x) {perm=[2,0,1]}\n%e = exp(%t)\n"
      "output \"e\" %e");
  check_text(
      "feed %x: f32[9,20]\n%s = slice(%x) {starts=[8,1], sizes=[4,6], steps=[-2,3]}\n"
      "%e = neg(%s)\noutput \"e\" %e");
  check_text(
      "feed %x: f32[3,18]\nconstant %v: f32[] = [2.5]\n"
      "%p = pad(%x, %v) {low=[1,2], high=[0,3]}\n%e = mul(%p, %p)\noutput \"e\" %e");
  check_text(
      "feed %x: f32[3,18]\nfeed %y: f32[3,4]\nfeed %z: f32[3,1]\n%n = neg(%y)\n"
      "%c = concat(%x, %n, %z) {axis=1}\n%e = add(%c, %c)\noutput \"e\" %e");
  check_text(
      "feed %x: f32[3,18]\nfeed %y: f32[2,18]\n%c = concat(%x, %y) {axis=0}\n"
      "output \"c\" %c");
}

TEST_CASE("parts are placed in a whole") {
  check_text(
      "feed %x: f32[3,5]\nfeed %y: f32[4,18]\n%p = place(%x, %y) {shape=[4,18], starts=[1,2]}\n"
      "%n = neg(%p)\noutput \"n\" %n");
  check_text("feed %x: f32[3,5]\n%p = place(%x) {shape=[3,18], starts=[0,13]}\noutput \"p\" %p");
}

TEST_CASE("reshapes inside a kernel") {
  check_text(
      "feed %x: f32[4,6,8]\n%e = exp(%x)\n%r = reshape(%e) {shape=[4,48]}\n"
      "feed %b: f32[48]\n%s = add(%r, %b)\n%q = reshape(%s) {shape=[2,2,3,16]}\n"
      "%t = transpose(%q) {perm=[0,2,1,3]}\n%u = neg(%t)\noutput \"u\" %u");
}

TEST_CASE("reductions of rows") {
  for (int64_t columns : {2, 15, 16, 17, 33, 1000}) {
    for (const std::string op : {"sum", "max", "min", "prod"}) {
      check_text("feed %x: f32[7," + n(columns) + "]\n%r = reduce_" + op +
                     "(%x) {axes=[1]}\n%y = neg(%r)\noutput \"y\" %y",
                 {}, 1e-5);
    }
  }
  check_text("feed %x: f32[3,4,5,6]\n%r = reduce_sum(%x) {axes=[0,2,3]}\noutput \"r\" %r", {},
             1e-5);
  check_text("feed %x: f32[40]\n%r = reduce_sum(%x) {axes=[0]}\noutput \"r\" %r", {}, 1e-5);
}

TEST_CASE("reductions of columns") {
  for (int64_t columns : {1, 2, 15, 16, 17, 64, 100, 130}) {
    check_text("feed %x: f32[9," + n(columns) +
                   "]\n%r = reduce_sum(%x) {axes=[0]}\n"
                   "output \"r\" %r",
               {}, 1e-5);
  }
  check_text("feed %x: f32[3,4,5,6]\n%r = reduce_max(%x) {axes=[0,2]}\noutput \"r\" %r");
}

TEST_CASE("reductions without elements have their identity") {
  check_text(
      "feed %x: f32[3,0]\n%r = reduce_sum(%x) {axes=[1]}\n%m = reduce_prod(%x) {axes=[1]}\n"
      "output \"r\" %r\noutput \"m\" %m");
}

TEST_CASE("softmax, log-softmax and normalisation") {
  for (int64_t columns : {5, 16, 50, 300}) {
    const std::string x = "feed %x: f32[6," + n(columns) + "]\n";
    check_text(x +
               "%m = reduce_max(%x) {axes=[1]}\n%d = sub(%x, %m)\n%e = exp(%d)\n"
               "%s = reduce_sum(%e) {axes=[1]}\n%y = div(%e, %s)\n%l = log(%s)\n"
               "%z = sub(%d, %l)\noutput \"y\" %y\noutput \"z\" %z");
    check_text(x + "feed %g: f32[" + n(columns) +
               "]\n%s = reduce_sum(%x) {axes=[1]}\n"
               "constant %i: f32[] = [" +
               std::to_string(1.0 / static_cast<double>(columns)) +
               "]\n%m = mul(%s, %i)\n%c = sub(%x, %m)\n%q = mul(%c, %c)\n"
               "%v = reduce_sum(%q) {axes=[1]}\n%w = mul(%v, %i)\n"
               "constant %eps: f32[] = [1e-5]\n%a = add(%w, %eps)\n%r = rsqrt(%a)\n"
               "%n = mul(%c, %r)\n%y = mul(%n, %g)\noutput \"y\" %y\noutput \"m\" %m");
  }
}

TEST_CASE("cross-entropy picks the label's logit") {
  check_text(
      "feed %x: f32[9,40]\nfeed %label: i64[9,1]\n%m = reduce_max(%x) {axes=[1]}\n"
      "%d = sub(%x, %m)\n%e = exp(%d)\n%s = reduce_sum(%e) {axes=[1]}\n%l = log(%s)\n"
      "%z = sub(%d, %l)\n%p = pick(%z, %label) {axis=1}\n%n = neg(%p)\noutput \"n\" %n");
}

TEST_CASE("gathers") {
  check_text(
      "feed %table: f32[4,20]\nfeed %ids: i64[2,3]\nfeed %pos: f32[3,20]\n"
      "%g = gather(%table, %ids) {axis=0}\n%y = add(%g, %pos)\noutput \"y\" %y");
  check_text(
      "feed %table: f32[5,4,6]\nfeed %ids: i32[3]\n%g = gather(%table, %ids) {axis=1}\n"
      "output \"g\" %g");
  check_text(
      "feed %x: f32[4,7]\nfeed %ids: i64[4,7]\n"
      "%g = gather_elements(%x, %ids) {axis=0}\noutput \"g\" %g");
  check_text(
      "feed %x: f32[2,4,5,6]\nfeed %ids: i64[2,3,2]\n"
      "%g = gather_nd(%x, %ids) {batch_dims=1}\noutput \"g\" %g");
}

TEST_CASE("iota and where") {
  check_text(
      "feed %x: f32[6,19]\n%r = iota() {shape=[6,19], axis=0, dtype=\"i64\"}\n"
      "%c = iota() {shape=[6,19], axis=1, dtype=\"i64\"}\n%keep = greater_equal(%r, %c)\n"
      "constant %low: f32[] = [-1e9]\n%y = where(%keep, %x, %low)\noutput \"y\" %y");
}

TEST_CASE("long sums lose few bits, along rows, columns and both") {
  const std::string squares = "\n%q = mul(%x, %x)\n%s = reduce_sum(%q) {axes=";
  check_text("feed %x: f32[50000,3]" + squares + "[0]}\noutput \"s\" %s", {}, 1e-6);
  check_text("feed %x: f32[70,60000]" + squares + "[1]}\noutput \"s\" %s", {}, 1e-6);
  check_text("feed %x: f32[300,2,49]" + squares + "[0,2]}\noutput \"s\" %s", {}, 1e-6);
}
