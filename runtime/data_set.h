// The samples that a run reads: one file per graph input, or a token stream for two of them.
//
// A feed whose first dimension is a multiple of the micro-batch's rows has samples along that
// dimension; a scalar, and any other shape, is a constant of the run. Files are mapped and may be
// larger than memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "element_type.h"
#include "failure.h"
#include "mapped_file.h"
#include "npy.h"
#include "options.h"
#include "plan/format.h"
#include "plan_memory.h"

namespace sgtc::runtime {

/// An opened file, not yet bound to feeds.
struct DataFile {
  MappedFile file;
  std::vector<std::string> names;  // two for a token stream
  NpyHeader header;                // of a .npy file
  int64_t token_offset = 0;        // of a token stream: where its uint16 tokens begin
  int64_t token_count = 0;
  bool is_token_stream() const { return names.size() == 2; }
};

/// Opens and checks all files. Dies for one that cannot be read or a name that comes twice.
std::vector<DataFile> open_data_files(const std::vector<NamedFile>& files);

class DataSet {
 public:
  /// Binds the files to the feeds of a plan. Fails if a feed has no file, a file no feed, or if
  /// element type, shape or number of samples do not fit. `files` must outlive this.
  MaybeFailure bind(const plan::Plan& plan, const std::vector<DataFile>& files);

  /// Equal for all feeds; 0 if no feed has samples: then steps need no rows.
  int64_t samples() const { return samples_; }
  /// Tokens of one sample if the first feed with samples is a matrix of integers, else 0.
  int64_t tokens_per_sample() const { return tokens_per_sample_; }

  /// One feed's data.
  struct Source {
    std::string feed;
    const unsigned char* data = nullptr;
    int64_t stride = 0;        // bytes from one sample to the next in the file
    int64_t elements = 0;      // of one sample, or of the constant
    int64_t target_bytes = 0;  // of one sample, or of the constant
    Converter converter = nullptr;
    int64_t samples = 0;  // 0: a constant
  };
  const std::vector<Source>& sources() const { return sources_; }

 private:
  MaybeFailure add_file(const plan::Plan& plan, const DataFile& file);
  MaybeFailure agree_on_samples();

  std::vector<Source> sources_;
  int64_t samples_ = 0;
  int64_t tokens_per_sample_ = 0;
};

/// Copies samples into the feed buffers of a position: those of the inputs that it reads, and the
/// weights of rows where the plan has them.
class Feeder {
 public:
  Feeder(const plan::Plan& plan, const DataSet& data, const PlanMemory& memory);
  void load_constants() const;
  /// Puts `sample` into row `row` of micro-batch `micro_batch`, with a weight of 1, or 0 for
  /// padding.
  void load_row(int64_t micro_batch, int64_t row, int64_t sample, float weight) const;

 private:
  struct Target {
    const DataSet::Source* source = nullptr;
    std::vector<unsigned char*> instances;  // per micro-batch
  };
  std::vector<Target> targets_;
  std::vector<float*> weights_;  // of the rows, per micro-batch
  int64_t rows_;                 // of a micro-batch
};

}  // namespace sgtc::runtime
