// A number of Python on its way to a kernel: it keeps its category and never becomes a tensor.
#pragma once

#include <cstdint>

#include "rushlight/dtype.h"

namespace rushlight {

class Scalar {
  public:
    constexpr Scalar() : integer_(0), dtype_(DType::Int64) {}
    constexpr Scalar(bool v) : integer_(v), dtype_(DType::Bool) {}
    constexpr Scalar(int v) : integer_(v), dtype_(DType::Int64) {}
    constexpr Scalar(int64_t v) : integer_(v), dtype_(DType::Int64) {}
    constexpr Scalar(double v) : floating_(v), dtype_(DType::Float64) {}

    /// Bool, Int64 or Float64.
    constexpr DType dtype() const { return dtype_; }
    constexpr bool is_floating() const { return dtype_ == DType::Float64; }
    constexpr bool is_bool() const { return dtype_ == DType::Bool; }
    constexpr bool is_integral() const { return dtype_ == DType::Int64; }

    template <class T>
    constexpr T to() const {
        if constexpr (sizeof(T) == 1 && T(2) == T(1)) {  // bool
            return is_floating() ? floating_ != 0 : integer_ != 0;
        } else {
            return is_floating() ? static_cast<T>(floating_) : static_cast<T>(integer_);
        }
    }
    constexpr bool equals(int v) const { return is_floating() ? floating_ == v : integer_ == v; }

  private:
    union {
        int64_t integer_;
        double floating_;
    };
    DType dtype_;
};

}  // namespace rushlight
