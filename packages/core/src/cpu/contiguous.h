// Functions that copy operands to scratch memory, in the layout or dtype that a kernel needs. Operands that a
// kernel can use directly are not copied.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// Allocates `count` elements of scratch memory.
template <class T>
T* scratch(KernelContext& ctx, int64_t count) {
    return static_cast<T*>(ctx.scratch(&ctx, sizeof(T) * static_cast<size_t>(count)));
}

/// Returns a row-major view of newly allocated scratch memory with v's sizes.
View scratch_like(KernelContext& ctx, const View& v, DType dtype);

/// Copies a defined view to row-major scratch memory, converts it to `dtype`, and returns the copy.
View contiguous_copy(KernelContext& ctx, const View& v, DType dtype);

/// Returns v itself if v is undefined, or is row-major and has the dtype `dtype`. Otherwise returns a row-major copy of
/// v in scratch memory, converted to `dtype`.
inline View contiguous_in(KernelContext& ctx, const View& v, DType dtype) {
    return !v.defined() || (v.contiguous && v.dtype == dtype) ? v : contiguous_copy(ctx, v, dtype);
}
inline View contiguous_in(KernelContext& ctx, const View& v) { return contiguous_in(ctx, v, v.dtype); }

/// Returns v, or a copy of v in scratch memory if v overlaps the memory that `written` spans.
View apart_from(KernelContext& ctx, const View& v, const View& written);

/// Returns the part of v that begins at v's first element and has the sizes of the view `sizes`.
View leading(const View& v, const View& sizes);

/// Exchanges the dimension `dim` of v, which may be negative, with the last dimension, and returns the result.
View with_last(KernelContext& ctx, const View& v, int64_t dim);

/// Whether v is channels-last but not row-major: the second dimension varies fastest in memory, without gaps, and the
/// other dimensions are in order.
bool is_channels_last(const View& v);

/// Returns v with its second dimension moved to the end, so that a channels-last view becomes a row-major view. An
/// undefined view is returned unchanged.
View channels_inside(KernelContext& ctx, const View& v);

/// Returns v with its dimensions in the order of the strides of `like`, from the largest to the smallest. If `like` is
/// dense, it is row-major in this order of dimensions. An undefined view is returned unchanged.
View in_order_of(KernelContext& ctx, const View& v, const View& like);

/// Returns v broadcast to the sizes of `like`.
View broadcast_to(KernelContext& ctx, const View& v, const View& like);

/// Converts a number to `dtype`, stores it in scratch memory, and returns its address.
const void* as_element(KernelContext& ctx, const Param& number, DType dtype);

/// Copies values between views of equal sizes, and converts them to the dtype of `out`. `out` is row-major.
void copy_to(const View& out, const View& in);

/// Writes zeros to a row-major view. Does nothing if the view is undefined or empty.
inline void clear(const View& v) {
    if (v.defined() && v.numel > 0)
        __builtin_memset(v.data, 0, itemsize(v.dtype) * static_cast<size_t>(v.numel));
}

/// Returns whether `t` is a reduced dtype: float16 or bfloat16, for which computations use float32.
inline bool is_reduced(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

/// An output that is computed in float32 if its dtype is float16 or bfloat16: pass `view()` to the float32 kernel, then
/// call `finish()`.
class WidenedOut {
  public:
    WidenedOut(KernelContext& ctx, const View& out)
        : out_(out),
          wide_(out.defined() && is_reduced(out.dtype) ? scratch_like(ctx, out, DType::Float32) : out) {}
    const View& view() const { return wide_; }
    void finish() const {
        if (out_.defined() && wide_.data != out_.data) copy_to(out_, wide_);
    }

  private:
    View out_, wide_;
};

/// A channels-last output of a kernel that writes row-major memory: pass `view()` to the kernel, then call `finish()`. Any
/// other output is written directly.
class RowMajorOut {
  public:
    RowMajorOut(KernelContext& ctx, const View& out)
        : out_(out),
          dense_(out.defined() && is_channels_last(out) ? scratch_like(ctx, out, out.dtype) : out) {}
    const View& view() const { return dense_; }
    void finish(KernelContext& ctx) const {
        if (out_.defined() && dense_.data != out_.data)
            copy_to(channels_inside(ctx, out_), channels_inside(ctx, dense_));
    }

  private:
    View out_, dense_;
};

/// An output to whose elements a kernel adds terms. If its dtype is float16 or bfloat16, the sums are computed in
/// float32 and rounded once, not after every term: pass `view()` to the float32 kernel, then call `finish()`. A tensor
/// of another dtype is updated in place.
class WidenedSums {
  public:
    WidenedSums(KernelContext& ctx, const View& written)
        : written_(written),
          wide_(is_reduced(written.dtype) ? contiguous_copy(ctx, written, DType::Float32) : written) {}
    const View& view() const { return wide_; }
    void finish(KernelContext& ctx) const;

  private:
    View written_, wide_;
};

/// Returns a float32 copy of a view whose dtype is float16 or bfloat16, and any other view unchanged.
inline View widened(KernelContext& ctx, const View& v) {
    return v.defined() && is_reduced(v.dtype) ? contiguous_in(ctx, v, DType::Float32) : v;
}

/// Kernels that copy strided memory into row-major memory.
struct CopyKernels {
    // Copies the elements of `in` to contiguous memory in row-major order. The strides of `in` are in elements.
    void (*copy_strided)(void* out, const void* in, DType dtype, int ndim, const int64_t* sizes,
                         const int64_t* strides);
};

RUSHLIGHT_KERNEL_TABLE(CopyKernels, copy_kernels)

}  // namespace rushlight::cpu
