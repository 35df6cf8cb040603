// Rules of kind "view": from a tensor's geometry to a view's. They check their arguments; memory is not touched.
#pragma once

#include <algorithm>

#include "rushlight/dispatch.h"

namespace rushlight {

/// A geometry under construction, without allocation.
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
        RL_CHECK(ndim < kMaxDims, throw_runtime, "a tensor has at most %d dimensions", kMaxDims);
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

/// A dimension given as -n..n-1, checked; a 0-d tensor takes 0 and -1.
int wrap_dim(const char* op, int64_t dim, int64_t ndim);

namespace views {
// indexing.cpp
ViewSpec select(const Tensor& input, int64_t dim, int64_t index);
ViewSpec slice(const Tensor& input, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
               int64_t step);
ViewSpec narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length);
ViewSpec diagonal(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2);
ViewSpec unfold(const Tensor& input, int64_t dimension, int64_t size, int64_t step);

// permutation.cpp
ViewSpec transpose(const Tensor& input, int64_t dim0, int64_t dim1);
ViewSpec t(const Tensor& input);
ViewSpec permute(const Tensor& input, IntList dims);
ViewSpec movedim(const Tensor& input, IntList source, IntList destination);

// reshape.cpp
ViewSpec view(const Tensor& input, IntList size);
ViewSpec view_as(const Tensor& input, const Tensor& other);
/// The geometry of `size` over the same memory; false where there is none.
bool try_view(const char* op, const Tensor& input, IntList size, ViewSpec& v);
ViewSpec squeeze(const Tensor& input);
ViewSpec squeeze_dim(const Tensor& input, IntList dim);
ViewSpec unsqueeze(const Tensor& input, int64_t dim);
ViewSpec expand(const Tensor& input, IntList size, bool implicit);
ViewSpec expand_as(const Tensor& input, const Tensor& other);
ViewSpec broadcast_to(const Tensor& input, IntList size);
ViewSpec as_strided(const Tensor& input, IntList size, IntList stride, std::optional<int64_t> storage_offset);
}  // namespace views

}  // namespace rushlight
