// Views of complex memory as real numbers, and the reverse. Such a view has another dtype. Its root is the tensor that owns
// the memory, so that autograd reads and writes through it as through other views.
#include "bodies/complex.h"
#include "rushlight/regroup.h"

namespace rushlight::storage {
namespace {

Tensor seen_as(const Tensor& input, IntList sizes, IntList strides, int64_t offset, DType dtype) {
    Tensor view = make_view(input, sizes, strides, input.impl()->offset());
    view.impl()->assign(Ref<Storage>::share(input.impl()->storage()), sizes, strides, offset, dtype);
    return view;
}

}  // namespace

Tensor view_as_real(const Tensor& input) {
    RL_CHECK(is_complex(input.dtype()), throw_runtime, "view_as_real(input): needs a complex tensor, got %s",
             name(input.dtype()));
    RL_CHECK(input.dim() < kMaxDims, throw_runtime, "view_as_real(input): a tensor has at most %d dimensions",
             kMaxDims);
    const size_t n = static_cast<size_t>(input.dim());
    int64_t sizes[kMaxDims], strides[kMaxDims];
    for (size_t d = 0; d < n; ++d) {
        sizes[d] = input.sizes()[d];
        strides[d] = 2 * input.strides()[d];
    }
    sizes[n] = 2;
    strides[n] = 1;
    return seen_as(input, IntList(sizes, n + 1), IntList(strides, n + 1), 2 * input.impl()->offset(),
                   real_dtype(input.dtype()));
}

Tensor view_as_complex(const Tensor& input) {
    RL_CHECK(input.dtype() == DType::Float32 || input.dtype() == DType::Float64, throw_runtime,
             "view_as_complex(input): needs float32 or float64, got %s", name(input.dtype()));
    RL_CHECK(input.dim() > 0 && input.sizes().back() == 2, throw_runtime,
             "view_as_complex(input): the last dimension must be of size 2, got shape %s",
             to_string(input.sizes()).c_str());
    const size_t n = static_cast<size_t>(input.dim()) - 1;
    int64_t strides[kMaxDims];
    for (size_t d = 0; d < n; ++d) strides[d] = input.strides()[d] / 2;
    RL_CHECK(
        can_regroup(input, 2), throw_runtime,
        "view_as_complex(input): the last stride must be 1, and the other strides and the offset must be "
        "divisible by 2, got strides %s and offset %lld\n"
        "hint: use contiguous() first",
        to_string(input.strides()).c_str(), (long long)input.impl()->offset());
    return seen_as(input, input.sizes().first(n), IntList(strides, n), input.impl()->offset() / 2,
                   complex_dtype(input.dtype()));
}

}  // namespace rushlight::storage
