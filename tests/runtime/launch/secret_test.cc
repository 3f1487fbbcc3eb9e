#include "runtime/launch/secret.h"

#include <sys/stat.h>

#include "runtime/temporary_folder.h"
#include "support/catch.h"

namespace sgtc::runtime {
namespace {

LaunchEnvironment several_hosts() {
  LaunchEnvironment environment;
  environment.size = 2;
  environment.job = "job";
  return environment;
}

SecretSource source_of(const LaunchEnvironment& environment, const JobOptions& options) {
  SecretSource source;
  CHECK_FALSE(find_secret(environment, options, source));
  return source;
}

}  // namespace

TEST_CASE("a given file of a secret comes before a variable") {
  LaunchEnvironment environment = several_hosts();
  environment.secret = "from a variable";
  CHECK(source_of(environment, {}).value == "from a variable");
  JobOptions options;
  options.secret_file = "file";
  options.checkpoint = "folder";
  CHECK(source_of(environment, options).path == "file");
  CHECK_FALSE(source_of(environment, options).from_rank_0);
}

TEST_CASE("several hosts share a secret in the folder of the checkpoints or have none") {
  SecretSource source;
  CHECK(find_secret(several_hosts(), {}, source));
  const TemporaryFolder folder;
  JobOptions options;
  options.checkpoint = folder / "checkpoints";
  source = source_of(several_hosts(), options);
  std::string secret = "x";
  CHECK_FALSE(read_secret(source, secret));
  CHECK(secret.empty());
  std::string provided;
  CHECK_FALSE(provide_secret(source, provided));
  CHECK(provided.size() == 64);
  CHECK_FALSE(read_secret(source, secret));
  CHECK(secret == provided);
  // It stays for the next job.
  forget_secret(source);
  CHECK_FALSE(provide_secret(source, secret));
  CHECK(secret == provided);
}

TEST_CASE("a job of one host makes a secret of its own") {
  LaunchEnvironment environment = several_hosts();
  environment.one_host = true;
  const SecretSource source = source_of(environment, {});
  std::string first;
  std::string second;
  CHECK_FALSE(provide_secret(source, first));
  CHECK_FALSE(provide_secret(source, second));
  CHECK(first != second);
  struct stat status = {};
  CHECK(stat(source.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  forget_secret(source);
  CHECK(stat(source.path.c_str(), &status) != 0);
}

TEST_CASE("files that others could read hold no secret") {
  const TemporaryFolder folder;
  const std::string path = folder / "secret";
  write_file(path, "  a secret \n\n");
  SecretSource source;
  source.path = path;
  std::string secret;
  chmod(path.c_str(), 0640);
  const MaybeFailure failure = read_secret(source, secret);
  REQUIRE(failure);
  CHECK(failure->problem == "holds a secret and is open to others: mode 640, expected 600");
  chmod(path.c_str(), 0400);
  CHECK_FALSE(read_secret(source, secret));
  CHECK(secret == "  a secret");
  write_file(folder / "empty", "\n");
  chmod((folder / "empty").c_str(), 0600);
  source.path = folder / "empty";
  CHECK(read_secret(source, secret));
  source.path = folder.path();
  CHECK(read_secret(source, secret));
}

TEST_CASE("the file of rank 0 is no link") {
  const TemporaryFolder folder;
  write_file(folder / "target", "a secret");
  chmod((folder / "target").c_str(), 0600);
  REQUIRE(symlink((folder / "target").c_str(), (folder / "link").c_str()) == 0);
  SecretSource source;
  source.path = folder / "link";
  std::string secret;
  CHECK_FALSE(read_secret(source, secret));
  source.from_rank_0 = true;
  CHECK(read_secret(source, secret));
}

}  // namespace sgtc::runtime
