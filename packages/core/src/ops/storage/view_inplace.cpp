// In-place views.
#include "bodies/view_inplace.h"
#include "bodies/permutation.h"
#include "bodies/reshape.h"
#include "ops/views.h"

namespace rushlight::storage {
namespace {

// Note [Views in place]
// Only the tensor's own geometry changes; its memory and other views of the memory do not. A node that saved the tensor as
// an argument holds this tensor, and would read it with the new geometry. Therefore, if anything else refers to the tensor,
// its version is incremented, and such a node raises an error when it uses the tensor. A result that its own node saved is
// stored as an alias and is not affected.
const Tensor& reshaped(const char* op, const Tensor& input, const ViewSpec& spec) {
    TensorImpl* impl = input.impl();
    if (impl->use_count() > 1) begin_write(op, input);
    const auto n = static_cast<size_t>(spec.ndim);
    impl->assign(Ref<Storage>::share(impl->storage()), IntList(spec.sizes, n), IntList(spec.strides, n),
                 spec.offset, input.dtype());
    return input;
}

}  // namespace

Tensor squeeze_(const Tensor& input) { return reshaped("squeeze_", input, views::squeeze(input)); }
Tensor squeeze__dim(const Tensor& input, IntList dim) {
    return reshaped("squeeze_", input, views::squeeze_dim(input, dim));
}
Tensor unsqueeze_(const Tensor& input, int64_t dim) {
    return reshaped("unsqueeze_", input, views::unsqueeze(input, dim));
}
Tensor transpose_(const Tensor& input, int64_t dim0, int64_t dim1) {
    return reshaped("transpose_", input, views::transpose(input, dim0, dim1));
}
Tensor as_strided_(const Tensor& input, IntList size, IntList stride, std::optional<int64_t> storage_offset) {
    return reshaped("as_strided_", input, views::as_strided(input, size, stride, storage_offset));
}
Tensor t_(const Tensor& input) { return reshaped("t_", input, views::t(input)); }

}  // namespace rushlight::storage
