// Files that survive a crash: what counts as written has been synced to the disk, and a name
// appears with complete contents only.
//
// For tests, SGTC_CRASH_AT=n in the environment kills the process in place of the n-th write, sync
// or rename of this file's functions (a write leaves half of its bytes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"
#include "sha256.h"

namespace sgtc::runtime {

/// Writes one new file from front to back.
class DurableFile {
 public:
  DurableFile() = default;
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;
  ~DurableFile();

  MaybeFailure create(const std::string& path);
  MaybeFailure write(const void* data, int64_t size);
  /// Syncs and closes.
  MaybeFailure finish();

  int64_t size() const { return size_; }
  /// SHA-256 of everything written; after `finish`.
  const std::string& digest() const { return digest_; }

 private:
  MaybeFailure flush();

  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
  std::vector<unsigned char> pending_;
  Sha256 hash_;
  std::string digest_;
};

/// A file that several processes write, each its own parts: one creates it, then the others open
/// it.
class SharedFile {
 public:
  SharedFile() = default;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  /// A new file of `size` zero bytes.
  MaybeFailure create(const std::string& path, int64_t size);
  MaybeFailure open(const std::string& path);
  bool is_open() const { return file_ >= 0; }
  MaybeFailure write(const void* data, int64_t size, int64_t offset);
  /// Syncs and closes.
  MaybeFailure finish();

 private:
  std::string path_;
  int file_ = -1;
};

/// Renames within a folder and syncs the folder.
MaybeFailure rename_durably(const std::string& from, const std::string& to);
MaybeFailure sync_folder(const std::string& path);

/// Makes the folder and its missing parents.
MaybeFailure make_folders(const std::string& path);
/// Removes a file, or a folder with the files in it; absence is fine.
void remove_tree(const std::string& path);
/// Names in a folder, sorted; none if it cannot be read.
std::vector<std::string> list_folder(const std::string& path);

/// The folder part of a path: "." if it has none.
std::string parent_folder(const std::string& path);

/// A failure if a new file called `path` could not be created.
MaybeFailure probe_writable(const std::string& path);

}  // namespace sgtc::runtime
