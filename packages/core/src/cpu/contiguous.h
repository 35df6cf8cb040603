// Copies of operands in scratch memory, in the order or dtype that a kernel needs. Operands that a kernel can use
// directly are not copied.
#pragma once

#include "cpu/capability.h"
#include "rushlight/kernel.h"

namespace rushlight::cpu {

/// `count` elements of scratch memory.
template <class T>
T* scratch(KernelContext& ctx, int64_t count) {
    return static_cast<T*>(ctx.scratch(&ctx, sizeof(T) * static_cast<size_t>(count)));
}

/// A row-major view of new scratch memory with v's sizes.
View scratch_like(KernelContext& ctx, const View& v, DType dtype);

/// A row-major copy of a defined view in scratch memory, converted to `dtype`.
View contiguous_copy(KernelContext& ctx, const View& v, DType dtype);

/// v itself if it is row-major and of `dtype`, else a copy in scratch memory. Undefined views stay undefined.
inline View contiguous_in(KernelContext& ctx, const View& v, DType dtype) {
    return !v.defined() || (v.contiguous && v.dtype == dtype) ? v : contiguous_copy(ctx, v, dtype);
}
inline View contiguous_in(KernelContext& ctx, const View& v) { return contiguous_in(ctx, v, v.dtype); }

/// v itself, or a copy in scratch memory where it lies in memory that `written` spans.
View apart_from(KernelContext& ctx, const View& v, const View& written);

/// The first elements of v, as many along each dimension as `sizes` has.
View leading(const View& v, const View& sizes);

/// v with the dimension `dim`, which may be negative, and the last exchanged.
View with_last(KernelContext& ctx, const View& v, int64_t dim);

/// v repeated to the sizes of `like`, to which it broadcasts.
View broadcast_to(KernelContext& ctx, const View& v, const View& like);

/// A number as an element of `dtype`, in scratch memory.
const void* as_element(KernelContext& ctx, const Param& number, DType dtype);

/// Copies values between views of equal sizes, converting between dtypes. `out` is row-major.
void copy_to(const View& out, const View& in);

/// Writes zeros to a row-major view; does nothing if it is undefined or empty.
inline void clear(const View& v) {
    if (v.defined() && v.numel > 0)
        __builtin_memset(v.data, 0, itemsize(v.dtype) * static_cast<size_t>(v.numel));
}

/// float16 and bfloat16 are computed through float32.
inline bool is_reduced(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

/// An output of a reduced dtype, computed in float32: hand `view()` to the float32 kernel, then `finish()`.
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

/// Sums in a tensor of reduced dtype, rounded once and not with every term: hand `view()` to the float32 kernel, then
/// `finish()`. Other dtypes are written as they are.
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

/// The float32 copy of a view of reduced dtype; any other view as it is.
inline View widened(KernelContext& ctx, const View& v) {
    return v.defined() && is_reduced(v.dtype) ? contiguous_in(ctx, v, DType::Float32) : v;
}

/// Copies of strided memory into row-major memory.
struct CopyKernels {
    // out[i] = in[...] over `ndim` sizes, last fastest; strides of `in` count elements.
    void (*copy_strided)(void* out, const void* in, DType dtype, int ndim, const int64_t* sizes,
                         const int64_t* strides);
};

RUSHLIGHT_KERNEL_TABLE(CopyKernels, copy_kernels)

}  // namespace rushlight::cpu
