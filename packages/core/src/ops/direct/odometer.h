// Positions of a shape, and where their elements lie.
#pragma once

#include "rushlight/tensor.h"

namespace rushlight::direct {

/// Walks sizes in row-major order with one strided offset.
struct Odometer {
    int ndim = 0;
    int64_t sizes[kMaxDims], strides[kMaxDims];
    int64_t count = 1;

    void push(int64_t size, int64_t stride) {
        sizes[ndim] = size;
        strides[ndim++] = stride;
        count *= size;
    }
    int64_t offset(int64_t position) const {
        int64_t at = 0;
        for (int d = ndim - 1; d >= 0; --d) {
            at += position % sizes[d] * strides[d];
            position /= sizes[d];
        }
        return at;
    }
    /// Elements at the end that lie side by side; they leave the odometer.
    int64_t take_run() {
        int64_t run = 1;
        while (ndim > 0 && (strides[ndim - 1] == run || sizes[ndim - 1] == 1)) { run *= sizes[--ndim]; }
        count = 1;
        for (int d = 0; d < ndim; ++d) count *= sizes[d];
        return run;
    }
};

}  // namespace rushlight::direct
