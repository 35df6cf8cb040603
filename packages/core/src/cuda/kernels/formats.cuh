// Tensors in the two formats in which convolutions store images: row-major and channels-last.
#pragma once

#include "cuda/kernels/rows.cuh"

namespace rushlight::cuda {
namespace {

/// The strides of a shape (batch, channels, ...) in one of the formats.
struct FormatStrides {
    int64_t strides[64];
    FormatStrides(const int64_t* sizes, int ndim, bool channels_last) {
        int64_t step = channels_last ? sizes[1] : 1;
        for (int d = ndim - 1; d >= 0; --d) {
            if (channels_last && d == 1) {
                strides[d] = 1;
                continue;
            }
            strides[d] = step;
            step *= sizes[d];
        }
    }
};

/// Whether the elements of a view are stored without gaps in a format. The strides of dimensions of size 1 do not matter.
bool has_format(const View& v, bool channels_last) {
    const FormatStrides expected(v.sizes, v.ndim, channels_last);
    for (int d = 0; d < v.ndim; ++d)
        if (v.sizes[d] != 1 && v.strides[d] != expected.strides[d]) return false;
    return true;
}
/// Whether a view of four or five dimensions is channels-last, and not also row-major.
bool is_channels_last(const View& v) {
    return (v.ndim == 4 || v.ndim == 5) && has_format(v, true) && !has_format(v, false);
}

/// Returns a view's elements in a format: the given memory, or a copy in scratch memory. Null if the view is absent.
template <class T>
const T* in_format(KernelContext* context, const View& v, bool channels_last) {
    constexpr DType kDType = DTypeOf<T>::value;
    if (!v.defined()) return nullptr;
    if (v.dtype == kDType && has_format(v, channels_last)) return v.as<const T>();
    T* made = scratch<T>(context, v.numel);
    const FormatStrides strides(v.sizes, v.ndim, channels_last);
    queue_copy(View{made, v.sizes, strides.strides, v.numel, v.ndim, kDType, !channels_last}, v, context);
    return made;
}

/// Memory in a format for an output: the output's own memory, or scratch memory that `finish` copies to the output.
template <class T>
class FormatOut {
  public:
    FormatOut(KernelContext* context, const View& out, bool channels_last)
        : context_(context), out_(out), channels_last_(channels_last) {
        if (!out.defined()) return;
        writes_output_ = out.dtype == DTypeOf<T>::value && has_format(out, channels_last);
        data_ = writes_output_ ? out.as<T>() : scratch<T>(context, out.numel);
    }
    /// Null if the output is absent.
    T* data() const { return data_; }
    void finish() const {
        if (writes_output_ || !data_) return;
        const FormatStrides strides(out_.sizes, out_.ndim, channels_last_);
        queue_copy(out_,
                   View{data_, out_.sizes, strides.strides, out_.numel, out_.ndim, DTypeOf<T>::value,
                        !channels_last_},
                   context_);
    }

  private:
    KernelContext* context_;
    const View& out_;
    bool channels_last_, writes_output_ = false;
    T* data_ = nullptr;
};

}  // namespace
}  // namespace rushlight::cuda
