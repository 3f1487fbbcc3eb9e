#include "runtime/launch/node_list.h"

#include "support/catch.h"

namespace sgtc::runtime {
namespace {

std::vector<std::string> hosts_of(const std::string& list) {
  std::vector<std::string> hosts;
  const MaybeFailure failure = expand_node_list(list, 100, hosts);
  INFO(list);
  CHECK_FALSE(failure);
  return hosts;
}

std::string first_of(const std::string& list) {
  std::string host;
  const MaybeFailure failure = first_host(list, host);
  INFO(list);
  CHECK_FALSE(failure);
  return host;
}

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("the first host of a Slurm node list") {
  CHECK(first_of("linux[1,2]") == "linux1");
  CHECK(first_of("alpha,beta,gamma") == "alpha");
  CHECK(first_of("jean-zay-ia[810,812]") == "jean-zay-ia810");
  CHECK(first_of("nodeA,nodeB[001,003],nodeC") == "nodeA");
  CHECK(first_of("node[008-011,020]") == "node008");
  CHECK(first_of("rack[1-2]n[01-04]") == "rack1n01");
  CHECK(first_of("single") == "single");
  CHECK(first_of("n[00000-99999]r[00000-99999].cluster.example") == "n00000r00000.cluster.example");
}

TEST_CASE("a Slurm node list expands in order") {
  CHECK(hosts_of("node[008-011,020]") ==
        Hosts{"node008", "node009", "node010", "node011", "node020"});
  CHECK(hosts_of("n[9-11]") == Hosts{"n9", "n10", "n11"});
  CHECK(hosts_of("n[98-101]x") == Hosts{"n98x", "n99x", "n100x", "n101x"});
  CHECK(hosts_of("a[1-3,07],b-[01-02]-x[1,2]") ==
        Hosts{"a1", "a2", "a3", "a07", "b-01-x1", "b-01-x2", "b-02-x1", "b-02-x2"});
  CHECK(hosts_of("nodeA,nodeB[001,003],nodeC") == Hosts{"nodeA", "nodeB001", "nodeB003", "nodeC"});
  CHECK(hosts_of("r[1-2][3-4]") == Hosts{"r13", "r14", "r23", "r24"});
  CHECK(hosts_of("10.0.0.[1-2]") == Hosts{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("a node list that cannot be read is refused with its text") {
  const char* lists[] = {"",
                         ",",
                         "a,",
                         ",a",
                         "a,,b",
                         "a[1-",
                         "a[1-2",
                         "a]",
                         "a[]",
                         "a[1,]",
                         "a[,1]",
                         "a[-1]",
                         "a[2-1]",
                         "a[x-y]",
                         "a[1-]",
                         "a[1--2]",
                         "a[[1]]",
                         "a b",
                         "a[1 -2]",
                         "a;b",
                         "a[1-2]]",
                         "(null)",
                         "a[1234567890123456789]"};
  for (const char* list : lists) {
    INFO(list);
    std::string host;
    std::vector<std::string> hosts;
    const MaybeFailure failure = first_host(list, host);
    REQUIRE(failure);
    CHECK(failure->object == "node list '" + std::string(list) + "'");
    CHECK(expand_node_list(list, 100, hosts));
  }
}

TEST_CASE("a node list is not expanded beyond a limit") {
  std::vector<std::string> hosts;
  CHECK_FALSE(expand_node_list("a[1-100]", 100, hosts));
  CHECK(expand_node_list("a[1-101]", 100, hosts));
  CHECK(expand_node_list("a[0-999999999999999999]", 100, hosts));
  CHECK(expand_node_list("a[1-60],b[1-60]", 100, hosts));
}

}  // namespace sgtc::runtime
