// Elements that are moved and not computed with: of as many bytes, whatever their dtype.
#pragma once

#include "cuda/kernels/lines.cuh"

namespace rushlight::cuda {
namespace {

/// Elements of as many bytes.
template <int size>
struct alignas(size) Bytes {
    unsigned char bytes[size];
};

template <class F>
void by_size(DType dtype, F&& f) {
    switch (itemsize(dtype)) {
        case 1: return f(Bytes<1>());
        case 2: return f(Bytes<2>());
        case 4: return f(Bytes<4>());
        case 8: return f(Bytes<8>());
        default: return f(Bytes<16>());
    }
}

/// Row-major memory of a view, whatever its dtype.
const void* dense_bytes(KernelContext* context, const View& v) {
    if (v.contiguous) return v.data;
    void* made = scratch<char>(context, v.numel * static_cast<int64_t>(itemsize(v.dtype)));
    const RowMajor strides(v.sizes, v.ndim);
    queue_copy(View{made, v.sizes, strides.strides, v.numel, v.ndim, v.dtype, 1}, v, context);
    return made;
}

}  // namespace
}  // namespace rushlight::cuda
