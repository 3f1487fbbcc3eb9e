#include "data_set.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace sgtc::runtime {
namespace {

constexpr int32_t kTokenMagic = 20240520;  // of llm.c's token files
constexpr int64_t kTokenHeaderBytes = 256 * 4;

MaybeFailure open_tokens(DataFile& data) {
  const std::string& path = data.file.path();
  int32_t header[3] = {};
  if (data.file.size() >= kTokenHeaderBytes) std::memcpy(header, data.file.data(), sizeof header);
  data.token_count = data.file.size() / 2;
  if (header[0] != kTokenMagic) {
    if (data.file.size() % 2 == 0) return {};
    return Failure{path, "has an odd number of bytes, expected a stream of uint16 tokens", {}};
  }
  if (header[1] != 1) {
    return Failure{path, format("has version %d of the token format, expected 1", header[1]), {}};
  }
  data.token_offset = kTokenHeaderBytes;
  data.token_count = (data.file.size() - kTokenHeaderBytes) / 2;
  if (header[2] != data.token_count) {
    return Failure{path,
                   format("is cut off: its header promises %d tokens, found %ld", header[2],
                          static_cast<long>(data.token_count)),
                   {}};
  }
  return {};
}

std::string names_of_feeds(const plan::Plan& plan) {
  std::set<std::string> names;
  for (const plan::Feed& feed : plan.feeds) {
    if (feed.name != plan.row_weights) names.insert(feed.name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

const plan::Feed* find_feed(const plan::Plan& plan, const std::string& name) {
  for (const plan::Feed& feed : plan.feeds) {
    if (feed.name == name && name != plan.row_weights) return &feed;
  }
  return nullptr;
}

// Rows of the feed that belong to one sample; 0 if the feed has no samples.
int64_t rows_per_sample(const plan::Plan& plan, const plan::Feed& feed) {
  const int64_t rows = plan.micro_batch_rows;
  if (feed.shape.empty() || rows == 0 || feed.shape[0] % rows != 0) return 0;
  return feed.shape[0] / rows;
}

bool equal_behind_first(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return a.size() == b.size() && !a.empty() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

std::string expected_shape(const plan::Feed& feed, int64_t per_sample) {
  if (per_sample == 0) return shape_text(feed.shape);
  std::string text = per_sample == 1 ? "[samples" : "[samples*" + std::to_string(per_sample);
  for (size_t i = 1; i < feed.shape.size(); ++i) text += "," + std::to_string(feed.shape[i]);
  return text + "]";
}

std::string numpy_name(const std::string& dtype) {
  if (dtype == "bool") return "numpy.bool_";
  if (dtype == "bf16") return "ml_dtypes.bfloat16";
  const char* kind = dtype[0] == 'f' ? "float" : dtype[0] == 'i' ? "int" : "uint";
  return std::string("numpy.") + kind + dtype.substr(1);
}

// Binds a .npy file to its feed.
MaybeFailure bind_array(const plan::Plan& plan, const plan::Feed& feed, const DataFile& file,
                        DataSet::Source& source) {
  const std::vector<int64_t>& shape = file.header.shape;
  source.converter = lossless_conversion(file.header.dtype, feed.dtype);
  if (!source.converter) {
    return Failure{file.file.path(),
                   "input " + feed.name + " expects " + feed.dtype + ", found " + file.header.dtype,
                   "convert the array with astype(" + numpy_name(feed.dtype) + ")"};
  }
  const int64_t per_sample = rows_per_sample(plan, feed);
  const int64_t feed_elements = element_count(feed.shape);
  const bool scalar = feed_elements == 1 && element_count(shape) == 1 && shape.size() <= 1 &&
                      (feed.shape.empty() || shape.empty() || per_sample == 0);
  const bool rows_fit = equal_behind_first(shape, feed.shape) &&
                        (per_sample > 0 ? shape[0] % per_sample == 0 : shape[0] == feed.shape[0]);
  if (!scalar && !rows_fit) {
    return Failure{file.file.path(),
                   "input " + feed.name + " expects shape " + expected_shape(feed, per_sample) +
                       ", found " + shape_text(shape),
                   per_sample > 0 ? "the first dimension counts samples" : ""};
  }
  if (!scalar && per_sample > 0 && shape[0] == 0) {
    return Failure{file.file.path(), "has no samples for input " + feed.name, {}};
  }
  const int64_t parts = scalar || per_sample == 0 ? 1 : plan.micro_batch_rows;
  source.data = file.file.data() + file.header.data_offset;
  source.elements = feed_elements / parts;
  source.stride = source.elements * size_of_element(file.header.dtype);
  source.samples = scalar || per_sample == 0 ? 0 : shape[0] / per_sample;
  return {};
}

// Binds a token stream to X (`shift` 0) or Y (`shift` 1).
MaybeFailure bind_tokens(const plan::Plan& plan, const plan::Feed& feed, const DataFile& file,
                         int64_t shift, DataSet::Source& source) {
  source.converter = lossless_conversion("u16", feed.dtype);
  const int64_t rows = plan.micro_batch_rows;
  const int64_t elements = element_count(feed.shape);
  if (!source.converter || !is_integer(feed.dtype) || rows_per_sample(plan, feed) == 0) {
    return Failure{file.file.path(),
                   "input " + feed.name + " takes " + feed.dtype + " of shape " +
                       shape_text(feed.shape) + ", which a token stream cannot fill",
                   "tokens need an input of i32 or i64"};
  }
  source.elements = elements / rows;
  source.stride = source.elements * 2;
  source.data = file.file.data() + file.token_offset + shift * 2;
  source.samples = source.elements > 0 ? (file.token_count - 1) / source.elements : 0;
  if (file.token_count <= source.elements) {
    return Failure{file.file.path(),
                   format("holds %ld tokens, expected at least %ld for one window of input %s",
                          static_cast<long>(file.token_count),
                          static_cast<long>(source.elements + 1), feed.name.c_str()),
                   {}};
  }
  return {};
}

}  // namespace

std::vector<DataFile> open_data_files(const std::vector<NamedFile>& files) {
  std::vector<DataFile> opened;
  std::vector<std::string> names;
  for (const NamedFile& file : files) {
    for (const std::string& name : file.names) {
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        die_usage("input " + name, "is given more than one file", "keep one of them");
      }
      names.push_back(name);
    }
    DataFile data;
    data.names = file.names;
    require(data.file.open(file.path));
    if (data.is_token_stream()) {
      require(open_tokens(data));
    } else {
      require(parse_npy(file.path, data.file.data(), data.file.size(), data.header));
    }
    opened.push_back(std::move(data));
  }
  return opened;
}

MaybeFailure DataSet::bind(const plan::Plan& plan, const std::vector<DataFile>& files) {
  *this = {};
  for (const DataFile& file : files) {
    if (MaybeFailure failure = add_file(plan, file)) return failure;
  }
  for (const plan::Feed& feed : plan.feeds) {
    const bool fed = std::any_of(sources_.begin(), sources_.end(),
                                 [&](const Source& source) { return source.feed == feed.name; });
    if (fed || feed.name == plan.row_weights) continue;
    return Failure{"input " + feed.name, "has no data",
                   "give --data " + feed.name + "=FILE.npy with " + feed.dtype + " of shape " +
                       expected_shape(feed, rows_per_sample(plan, feed))};
  }
  return agree_on_samples();
}

MaybeFailure DataSet::add_file(const plan::Plan& plan, const DataFile& file) {
  for (size_t i = 0; i < file.names.size(); ++i) {
    const plan::Feed* feed = find_feed(plan, file.names[i]);
    if (!feed) {
      return Failure{file.file.path(), "the program has no input " + file.names[i],
                     "its inputs are: " + names_of_feeds(plan)};
    }
    Source source;
    source.feed = feed->name;
    MaybeFailure failure = file.is_token_stream()
                               ? bind_tokens(plan, *feed, file, static_cast<int64_t>(i), source)
                               : bind_array(plan, *feed, file, source);
    if (failure) return failure;
    source.target_bytes = source.elements * size_of_element(feed->dtype);
    const bool tokens = source.samples > 0 && feed->shape.size() == 2 && is_integer(feed->dtype);
    if (tokens && tokens_per_sample_ == 0) tokens_per_sample_ = source.elements;
    sources_.push_back(source);
  }
  return {};
}

MaybeFailure DataSet::agree_on_samples() {
  const Source* longest = nullptr;
  for (const Source& source : sources_) {
    if (source.samples > 0 && (!longest || source.samples > longest->samples)) longest = &source;
  }
  if (!longest) return {};
  samples_ = longest->samples;
  for (Source& source : sources_) {
    if (source.samples == 1 && source.elements == 1) {
      if (samples_ > 1) source.samples = 0;  // a file of shape [1] is a constant
    } else if (source.samples != 0 && source.samples != samples_) {
      return Failure{"inputs " + longest->feed + " and " + source.feed,
                     format("have %ld and %ld samples", static_cast<long>(samples_),
                            static_cast<long>(source.samples)),
                     "give all inputs equally many"};
    }
  }
  return {};
}

Feeder::Feeder(const plan::Plan& plan, const DataSet& data, const PlanMemory& memory)
    : rows_(plan.micro_batch_rows) {
  for (const DataSet::Source& source : data.sources()) {
    const plan::Buffer* buffer = memory.find(source.feed);
    if (!buffer) continue;  // another position reads it
    Target target;
    target.source = &source;
    for (int64_t i = 0; i < buffer->count; ++i) {
      target.instances.push_back(memory.address(*buffer, i));
    }
    targets_.push_back(std::move(target));
  }
  const plan::Buffer* weights = plan.row_weights.empty() ? nullptr : memory.find(plan.row_weights);
  for (int64_t i = 0; weights && i < weights->count; ++i) {
    weights_.push_back(reinterpret_cast<float*>(memory.address(*weights, i)));
  }
}

void Feeder::load_constants() const {
  // For inputs that are all constants: then no row is loaded.
  for (float* weights : weights_) std::fill_n(weights, rows_, 1.0F);
  for (const Target& target : targets_) {
    if (target.source->samples > 0) continue;
    for (unsigned char* instance : target.instances) {
      target.source->converter(target.source->data, target.source->elements, instance);
    }
  }
}

void Feeder::load_row(int64_t micro_batch, int64_t row, int64_t sample, float weight) const {
  if (!weights_.empty()) weights_[static_cast<size_t>(micro_batch)][row] = weight;
  for (const Target& target : targets_) {
    const DataSet::Source& source = *target.source;
    if (source.samples == 0) continue;
    source.converter(
        source.data + sample * source.stride, source.elements,
        target.instances[static_cast<size_t>(micro_batch)] + row * source.target_bytes);
  }
}

}  // namespace sgtc::runtime
