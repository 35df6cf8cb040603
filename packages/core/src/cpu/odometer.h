// Conversion of positions in a shape to offsets in memory.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::cpu {

/// Converts positions, counted in row-major order of the sizes, to strided offsets. It is inlined because kernel
/// files use it too: Note [Kernels compiled twice].
struct Odometer {
    int ndim = 0;
    int64_t sizes[kMaxDims], strides[kMaxDims];
    int64_t count = 1;

    [[gnu::always_inline]] void push(int64_t size, int64_t stride) {
        sizes[ndim] = size;
        strides[ndim++] = stride;
        count *= size;
    }
    [[gnu::always_inline]] int64_t offset(int64_t position) const {
        int64_t at = 0;
        for (int d = ndim - 1; d >= 0; --d) {
            at += position % sizes[d] * strides[d];
            position /= sizes[d];
        }
        return at;
    }
    /// Removes the innermost dimensions along which elements are adjacent, and returns the product of the sizes of
    /// these dimensions.
    [[gnu::always_inline]] int64_t take_run() {
        int64_t run = 1;
        while (ndim > 0 && (strides[ndim - 1] == run || sizes[ndim - 1] == 1)) { run *= sizes[--ndim]; }
        count = 1;
        for (int d = 0; d < ndim; ++d) count *= sizes[d];
        return run;
    }
};

/// Iterates over the positions of an odometer, and computes their offsets without a division for each position.
class Walk {
  public:
    [[gnu::always_inline]] Walk(const Odometer& o, int64_t position) : o_(o) {
        for (int d = o.ndim - 1; d >= 0; --d) {
            if (position == 0) {  // the usual case, without divisions
                at_[d] = 0;
                continue;
            }
            at_[d] = position % o.sizes[d];
            offset_ += at_[d] * o.strides[d];
            position /= o.sizes[d];
        }
    }
    [[gnu::always_inline]] int64_t offset() const { return offset_; }
    [[gnu::always_inline]] void next() {
        for (int d = o_.ndim - 1; d >= 0; --d) {
            offset_ += o_.strides[d];
            if (++at_[d] < o_.sizes[d]) return;
            offset_ -= o_.sizes[d] * o_.strides[d];
            at_[d] = 0;
        }
    }

  private:
    const Odometer& o_;
    int64_t offset_ = 0, at_[kMaxDims];
};

}  // namespace rushlight::cpu
