// NumPy's array files (.npy, format versions 1 to 3): C order, little endian.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "failure.h"

namespace sgtc::runtime {

struct NpyHeader {
  std::string dtype;  // by the plan's names; bfloat16 is what ml_dtypes writes: '<V2'
  std::vector<int64_t> shape;
  int64_t data_offset = 0;  // in the file
};

/// Reads the header of a file of `size` bytes and checks that all data is there. `path` is for the
/// message.
MaybeFailure parse_npy(const std::string& path, const unsigned char* data, int64_t size,
                       NpyHeader& header);

/// The bytes before the data of a file with such an array. `dtype` by the plan's names.
std::string npy_header(const std::string& dtype, const std::vector<int64_t>& shape);

}  // namespace sgtc::runtime
