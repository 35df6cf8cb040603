// Rules of kind "view": they compute the geometry of a view from the geometry of a tensor. They check their arguments
// and do not access memory.
#pragma once

#include <algorithm>

#include "rushlight/dispatch.h"

namespace rushlight {

/// The geometry of a view while it is being computed. It needs no allocation.
struct ViewSpec {
    int ndim = 0;
    int64_t offset = 0;
    int64_t sizes[kMaxDims];
    int64_t strides[kMaxDims];

    ViewSpec() = default;
    explicit ViewSpec(const Tensor& t) : ndim(static_cast<int>(t.dim())), offset(t.impl()->offset()) {
        std::copy_n(t.sizes().data(), ndim, sizes);
        std::copy_n(t.strides().data(), ndim, strides);
    }
    void push(int64_t size, int64_t stride) {
        RL_CHECK(ndim < kMaxDims, throw_runtime,
                 "a tensor has at most %d dimensions, but the result would have %d", kMaxDims, ndim + 1);
        sizes[ndim] = size;
        strides[ndim++] = stride;
    }
    void remove(int d) {
        std::copy(sizes + d + 1, sizes + ndim, sizes + d);
        std::copy(strides + d + 1, strides + ndim, strides + d);
        --ndim;
    }
    void insert(int d, int64_t size, int64_t stride) {
        push(0, 0);
        std::copy_backward(sizes + d, sizes + ndim - 1, sizes + ndim);
        std::copy_backward(strides + d, strides + ndim - 1, strides + ndim);
        sizes[d] = size;
        strides[d] = stride;
    }
};

inline Tensor take_view(const Tensor& base, const ViewSpec& spec) {
    auto n = static_cast<size_t>(spec.ndim);
    return make_view(base, IntList(spec.sizes, n), IntList(spec.strides, n), spec.offset);
}

/// Checks a dimension in [-n, n) and converts it to [0, n). For a 0-d tensor, 0 and -1 are valid.
int wrap_dim(const char* op, int64_t dim, int64_t ndim);

namespace views {
/// Computes the geometry of a view of the input's memory with the shape `size`. Returns false if no such view exists.
bool try_view(const char* op, const Tensor& input, IntList size, ViewSpec& v);
}  // namespace views

}  // namespace rushlight
