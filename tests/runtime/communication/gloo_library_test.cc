#include "runtime/communication/gloo_library.h"

#include <cstdlib>

#include "runtime/child.h"
#include "support/catch.h"

namespace sgtc::runtime {

TEST_CASE("a Gloo plugin that cannot be loaded is named, with the remedy") {
  const TemporaryFolder folder;
  write_file(folder / "libsgtc_gloo.so", "no library");
  const ChildResult result = run_child([&] {
    setenv("SGTC_PLUGIN_PATH", ("/no-such-folder:" + (folder / "")).c_str(), 1);
    return static_cast<int>(load_gloo_plugin().version);
  });
  INFO(result.errors);
  CHECK(result.code == 1);
  CHECK(result.errors.find("libsgtc_gloo.so: cannot be loaded: ") != std::string::npos);
  CHECK(result.errors.find("install libgloo-dev") != std::string::npos);
}

}  // namespace sgtc::runtime
