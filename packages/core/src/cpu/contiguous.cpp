#include "cpu/contiguous.h"

#include <cstring>

#include "cpu/cast.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Between row-major arrays.
void convert(void* out, DType to, const void* in, DType from, int64_t n) {
    const CastTable::Loop loop = cast_loop(to, from);
    const int64_t strides[] = {static_cast<int64_t>(itemsize(to)), static_cast<int64_t>(itemsize(from))};
    parallel_for(0, n, 1 << 15, [&](int64_t first, int64_t last) {
        char* const data[] = {static_cast<char*>(out) + first * strides[0],
                              static_cast<char*>(const_cast<void*>(in)) + first * strides[1]};
        loop(data, strides, last - first, nullptr);
    });
}

}  // namespace

View scratch_like(KernelContext& ctx, const View& v, DType dtype) {
    View out = v;
    out.dtype = dtype;
    out.contiguous = 1;
    out.data = ctx.scratch(&ctx, itemsize(dtype) * static_cast<size_t>(v.numel));
    if (!v.contiguous) {
        int64_t* strides = scratch<int64_t>(ctx, v.ndim);
        int64_t step = 1;
        for (int d = v.ndim - 1; d >= 0; --d) {
            strides[d] = step;
            step *= v.sizes[d];
        }
        out.strides = strides;
    }
    return out;
}

View contiguous_in(KernelContext& ctx, const View& v, DType dtype) {
    if (!v.defined() || (v.contiguous && v.dtype == dtype)) return v;
    View dense = v;
    if (!v.contiguous) {
        dense = scratch_like(ctx, v, v.dtype);
        copy_kernels().copy_strided(dense.data, v.data, v.dtype, v.ndim, v.sizes, v.strides);
    }
    if (v.dtype == dtype) return dense;
    View out = scratch_like(ctx, dense, dtype);
    convert(out.data, dtype, dense.data, v.dtype, v.numel);
    return out;
}

void copy_to(const View& out, const View& in) {
    if (out.numel == 0) return;
    if (in.dtype == out.dtype) {
        if (in.contiguous) {
            std::memcpy(out.data, in.data, itemsize(in.dtype) * static_cast<size_t>(in.numel));
        } else {
            copy_kernels().copy_strided(out.data, in.data, in.dtype, in.ndim, in.sizes, in.strides);
        }
        return;
    }
    RL_CHECK(in.contiguous, throw_runtime, "copy_to: a strided copy does not convert %s to %s",
             name(in.dtype), name(out.dtype));
    convert(out.data, out.dtype, in.data, in.dtype, in.numel);
}

}  // namespace rushlight::cpu
