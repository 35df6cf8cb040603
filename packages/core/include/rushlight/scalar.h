// A Python number as an argument of a kernel. It keeps its category (bool, integer, real or complex) and is never
// converted to a tensor.
#pragma once

#include <cstdint>

#include "rushlight/complex.h"
#include "rushlight/dtype.h"

namespace rushlight {

class Scalar {
  public:
    constexpr Scalar() : integer_(0), dtype_(DType::Int64) {}
    constexpr Scalar(bool v) : integer_(v), dtype_(DType::Bool) {}
    constexpr Scalar(int v) : integer_(v), dtype_(DType::Int64) {}
    constexpr Scalar(int64_t v) : integer_(v), dtype_(DType::Int64) {}
    constexpr Scalar(double v) : floating_(v), dtype_(DType::Float64) {}
    constexpr Scalar(Complex<double> v) : floating_(v.re), imaginary_(v.im), dtype_(DType::Complex128) {}

    /// Bool, Int64, Float64 or Complex128.
    constexpr DType dtype() const { return dtype_; }
    constexpr bool is_complex() const { return dtype_ == DType::Complex128; }
    constexpr bool is_floating() const { return dtype_ == DType::Float64; }
    constexpr bool is_bool() const { return dtype_ == DType::Bool; }
    constexpr bool is_integral() const { return dtype_ == DType::Int64; }

    /// Returns the value as a T. Raises RuntimeError if the number is complex and T is a real type other than bool.
    template <class T>
    constexpr T to() const {
        if constexpr (kIsComplex<T>) {
            using Part = Real<T>;
            if (is_complex()) return T(static_cast<Part>(floating_), static_cast<Part>(imaginary_));
            return T(is_floating() ? static_cast<Part>(floating_) : static_cast<Part>(integer_));
        } else if constexpr (sizeof(T) == 1 && T(2) == T(1)) {  // bool
            return is_complex()    ? floating_ != 0 || imaginary_ != 0
                   : is_floating() ? floating_ != 0
                                   : integer_ != 0;
        } else {
            if (is_floating()) return static_cast<T>(floating_);
            if (is_complex()) [[unlikely]]
                fail_complex();
            return static_cast<T>(integer_);
        }
    }
    constexpr bool equals(int v) const {
        return is_complex()    ? floating_ == v && imaginary_ == 0
               : is_floating() ? floating_ == v
                               : integer_ == v;
    }

  private:
    [[noreturn, gnu::cold]] RL_API void fail_complex() const;

    union {
        int64_t integer_;
        double floating_;
    };
    double imaginary_ = 0;
    DType dtype_;
};

}  // namespace rushlight
