// Numbers as parameters of kernels.
#pragma once

#include "ops/cell.h"
#include "rushlight/kernel.h"
#include "rushlight/scalar.h"

namespace rushlight {

/// Up to `N` numbers as parameters of a kernel. Bools, integers, floating-point numbers and complex numbers become
/// parameters of the corresponding kinds.
template <int N>
class Numbers {
  public:
    Numbers() = default;
    Numbers(const Scalar* numbers, int count) {
        for (int i = 0; i < count; ++i) add(numbers[i]);
    }
    Numbers(const Numbers&) = delete;

    void add(Scalar v) {
        Param& p = params_[count_];
        p.length = 0;
        if (v.is_complex()) {
            const auto z = v.to<Complex<double>>();
            parts_[count_][0] = z.re;
            parts_[count_][1] = z.im;
            p.kind = Param::Kind::Complex;
            p.parts = parts_[count_];
        } else if (v.is_floating()) {
            p.kind = Param::Kind::Float;
            p.floating = v.to<double>();
        } else {
            p.kind = v.is_bool() ? Param::Kind::Bool : Param::Kind::Int;
            p.integer = v.to<int64_t>();
        }
        ++count_;
    }
    const Param* params() const { return params_; }
    uint16_t size() const { return static_cast<uint16_t>(count_); }

  private:
    Param params_[N];
    double parts_[N][2];
    int count_ = 0;
};

}  // namespace rushlight
