#include "cpu/contiguous.h"

#include <algorithm>
#include <cstring>

#include "cpu/cast.h"
#include "cpu/odometer.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Converts n elements of a row-major array to another dtype.
void convert(void* out, DType to, const void* in, DType from, int64_t n) {
    const LoopFn loop = cast_loop(to, from);
    const int64_t strides[] = {static_cast<int64_t>(itemsize(to)), static_cast<int64_t>(itemsize(from))};
    parallel_for(0, n, 1 << 15, [&](int64_t first, int64_t last) {
        char* const data[] = {static_cast<char*>(out) + first * strides[0],
                              static_cast<char*>(const_cast<void*>(in)) + first * strides[1]};
        run_row(loop, data, strides, last - first);
    });
}

// The range of addresses that a view spans.
struct Span {
    const char *begin, *end;

    explicit Span(const View& v) : begin(v.as<char>()), end(begin) {
        const auto size = static_cast<int64_t>(itemsize(v.dtype));
        for (int d = 0; d < v.ndim; ++d) {
            const int64_t reach = (v.sizes[d] - 1) * v.strides[d] * size;
            (reach < 0 ? begin : end) += reach;
        }
        end += size;
    }
};

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

View contiguous_copy(KernelContext& ctx, const View& v, DType dtype) {
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

View apart_from(KernelContext& ctx, const View& v, const View& written) {
    if (v.numel == 0 || written.numel == 0) return v;
    const Span a(v), b(written);
    if (a.end <= b.begin || b.end <= a.begin) return v;
    View copy = scratch_like(ctx, v, v.dtype);
    copy_to(copy, v);
    return copy;
}

View leading(const View& v, const View& sizes) {
    View part = v;
    part.numel = sizes.numel;
    part.contiguous = 1;
    if (v.ndim != sizes.ndim) return part;  // v has one element
    part.sizes = sizes.sizes;
    int64_t step = 1;
    for (int d = v.ndim - 1; d >= 0; --d) {
        if (part.sizes[d] != 1 && v.strides[d] != step) part.contiguous = 0;
        step *= part.sizes[d];
    }
    return part;
}

View with_last(KernelContext& ctx, const View& v, int64_t dim) {
    if (v.ndim < 2) return v;
    if (dim < 0) dim += v.ndim;
    if (dim == v.ndim - 1) return v;
    auto* geometry = scratch<int64_t>(ctx, 2 * v.ndim);
    std::copy_n(v.sizes, v.ndim, geometry);
    std::copy_n(v.strides, v.ndim, geometry + v.ndim);
    std::swap(geometry[dim], geometry[v.ndim - 1]);
    std::swap(geometry[v.ndim + dim], geometry[2 * v.ndim - 1]);
    View out = v;
    out.sizes = geometry;
    out.strides = geometry + v.ndim;
    return leading(out, out);
}

bool is_channels_last(const View& v) {
    if (v.contiguous || v.ndim < 3 || v.stride(1) != 1) return false;
    int64_t step = v.size(1);
    for (int d = v.ndim - 1; d >= 0; --d) {
        if (d == 1) continue;
        if (v.sizes[d] != 1 && v.strides[d] != step) return false;
        step *= v.sizes[d];
    }
    return true;
}

View channels_inside(KernelContext& ctx, const View& v) {
    if (v.ndim < 3) return v;
    auto* geometry = scratch<int64_t>(ctx, 2 * v.ndim);
    const auto moved = [&](const int64_t* from, int64_t* to) {
        to[0] = from[0];
        std::copy(from + 2, from + v.ndim, to + 1);
        to[v.ndim - 1] = from[1];
    };
    moved(v.sizes, geometry);
    moved(v.strides, geometry + v.ndim);
    View out = v;
    out.sizes = geometry;
    out.strides = geometry + v.ndim;
    return leading(out, out);
}

View in_order_of(KernelContext& ctx, const View& v, const View& like) {
    if (like.contiguous || !v.defined()) return v;
    auto* geometry = scratch<int64_t>(ctx, 3 * v.ndim);
    int64_t* order = geometry + 2 * v.ndim;
    for (int d = 0; d < v.ndim; ++d) order[d] = d;
    std::stable_sort(order, order + v.ndim,
                     [&](int64_t a, int64_t b) { return like.strides[a] > like.strides[b]; });
    for (int d = 0; d < v.ndim; ++d) {
        geometry[d] = v.sizes[order[d]];
        geometry[v.ndim + d] = v.strides[order[d]];
    }
    View out = v;
    out.sizes = geometry;
    out.strides = geometry + v.ndim;
    return leading(out, out);
}

View broadcast_to(KernelContext& ctx, const View& v, const View& like) {
    if (v.numel == like.numel && v.ndim == like.ndim) return v;
    View out = v;
    auto* strides = scratch<int64_t>(ctx, like.ndim);
    const int added = like.ndim - v.ndim;
    for (int d = 0; d < like.ndim; ++d)
        strides[d] = d < added || v.sizes[d - added] != like.sizes[d] ? 0 : v.strides[d - added];
    out.sizes = like.sizes;
    out.strides = strides;
    out.ndim = like.ndim;
    out.numel = like.numel;
    return leading(out, out);
}

const void* as_element(KernelContext& ctx, const Param& number, DType dtype) {
    void* element = scratch<Complex<double>>(ctx, 1);
    switch (number.kind) {
        case Param::Kind::Complex: {
            const Complex<double> z = number.as_complex();
            convert(element, dtype, &z, DType::Complex128, 1);
            break;
        }
        case Param::Kind::Float: convert(element, dtype, &number.floating, DType::Float64, 1); break;
        default: convert(element, dtype, &number.integer, DType::Int64, 1);
    }
    return element;
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
    RL_CHECK(in.contiguous, throw_runtime, "copy_to: a strided copy cannot convert %s to %s", name(in.dtype),
             name(out.dtype));
    convert(out.data, out.dtype, in.data, in.dtype, in.numel);
}

void WidenedSums::finish(KernelContext& ctx) const {
    if (wide_.data == written_.data) return;
    if (written_.contiguous) return copy_to(written_, wide_);
    const auto* from = contiguous_copy(ctx, wide_, written_.dtype).as<uint16_t>();
    auto* to = written_.as<uint16_t>();
    Odometer elements;
    for (int d = 0; d < written_.ndim; ++d) elements.push(written_.sizes[d], written_.strides[d]);
    for (int64_t i = 0; i < written_.numel; ++i) to[elements.offset(i)] = from[i];
}

}  // namespace rushlight::cpu
