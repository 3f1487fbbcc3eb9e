// Values that are copied often and changed rarely.
#pragma once

#include <memory>
#include <utility>

namespace sgtc {

/// A T that its copies share until one of them is changed. Not for objects that threads change.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  explicit CopyOnWrite(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const {
    static const T empty{};
    return value_ != nullptr ? *value_ : empty;
  }
  const T* operator->() const { return &**this; }

  /// To change it; valid until this object is copied.
  T& own() {
    if (value_ == nullptr) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(*value_);
    }
    return *value_;
  }

  bool shares(const CopyOnWrite& other) const { return value_ == other.value_; }

 private:
  std::shared_ptr<T> value_;  // null: T{}
};

}  // namespace sgtc
