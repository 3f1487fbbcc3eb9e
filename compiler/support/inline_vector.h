// A list that needs no memory of its own while it is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace sgtc {

/// The first N elements lie in the list itself; more of them all lie in `more_`.
template <typename T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  InlineVector() = default;
  InlineVector(size_t size, const T& value) { resize(size, value); }
  InlineVector(std::initializer_list<T> list) {
    for (const T& element : list) push_back(element);
  }
  InlineVector(const InlineVector&) = default;
  InlineVector& operator=(const InlineVector&) = default;
  /// Leaves `other` empty.
  InlineVector(InlineVector&& other) noexcept { *this = std::move(other); }
  InlineVector& operator=(InlineVector&& other) noexcept {
    more_ = std::move(other.more_);
    std::copy_n(other.few_, N, few_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }

  void push_back(const T& value) { resize(size_ + 1, value); }
  /// Elements that come to it are `value`.
  void resize(size_t size, const T& value) {
    const T filling = value;
    if (size > N) {
      if (size_ <= N) more_.assign(begin(), end());
      more_.resize(size, filling);
    } else {
      if (size_ > N) std::copy_n(more_.begin(), size, few_);
      if (size > size_) std::fill(few_ + size_, few_ + size, filling);
    }
    size_ = size;
  }
  void erase(const T* at) {
    T* place = begin() + (at - begin());
    std::copy(place + 1, end(), place);
    resize(size_ - 1, T{});
  }

  bool operator==(const InlineVector& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  T* data() { return size_ <= N ? few_ : more_.data(); }
  const T* data() const { return size_ <= N ? few_ : more_.data(); }

  size_t size_ = 0;
  T few_[N] = {};
  std::vector<T> more_;
};

}  // namespace sgtc
