// Copies of views.
#include "bodies/view_copies.h"
#include "rushlight/ops/as_strided.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/permute.h"
#include "rushlight/ops/select.h"
#include "rushlight/ops/slice.h"
#include "rushlight/ops/split.h"
#include "rushlight/ops/split_with_sizes.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/t.h"
#include "rushlight/ops/transpose.h"
#include "rushlight/ops/unbind.h"
#include "rushlight/ops/unfold.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/view.h"
#include "rushlight/ops/view_as_complex.h"
#include "rushlight/ops/view_as_real.h"

namespace rushlight::composites {
namespace {

Tensor copy(const Tensor& view) { return ops::clone(view, "contiguous"); }
std::vector<Tensor> copies(std::vector<Tensor> views) {
    for (Tensor& view : views) view = copy(view);
    return views;
}

}  // namespace

Tensor alias_copy(const Tensor& input) { return copy(input); }
Tensor detach_copy(const Tensor& input) { return copy(ops::detach(input)); }
Tensor as_strided_copy(const Tensor& input, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset) {
    return copy(ops::as_strided(input, size, stride, storage_offset));
}
Tensor view_as_real_copy(const Tensor& input) { return copy(ops::view_as_real(input)); }
Tensor view_as_complex_copy(const Tensor& input) { return copy(ops::view_as_complex(input)); }
Tensor diagonal_copy(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
    return copy(ops::diagonal(input, offset, dim1, dim2));
}
Tensor expand_copy(const Tensor& input, IntList size, bool implicit) {
    return copy(ops::expand(input, size, implicit));
}
Tensor permute_copy(const Tensor& input, IntList dims) { return copy(ops::permute(input, dims)); }
Tensor select_copy(const Tensor& input, int64_t dim, int64_t index) {
    return copy(ops::select(input, dim, index));
}
Tensor slice_copy(const Tensor& input, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                  int64_t step) {
    return copy(ops::slice(input, dim, start, end, step));
}
Tensor squeeze_copy(const Tensor& input) { return copy(ops::squeeze(input)); }
Tensor squeeze_copy_dim(const Tensor& input, IntList dim) { return copy(ops::squeeze(input, dim)); }
Tensor t_copy(const Tensor& input) { return copy(ops::t(input)); }
Tensor transpose_copy(const Tensor& input, int64_t dim0, int64_t dim1) {
    return copy(ops::transpose(input, dim0, dim1));
}
Tensor unfold_copy(const Tensor& input, int64_t dimension, int64_t size, int64_t step) {
    return copy(ops::unfold(input, dimension, size, step));
}
Tensor unsqueeze_copy(const Tensor& input, int64_t dim) { return copy(ops::unsqueeze(input, dim)); }
Tensor view_copy(const Tensor& input, IntList size) { return ops::view(copy(input), size); }
Tensor view_copy_dtype(const Tensor& input, DType dtype) { return copy(ops::view(input, dtype)); }
std::vector<Tensor> split_copy(const Tensor& input, int64_t split_size, int64_t dim) {
    return copies(ops::split(input, split_size, dim));
}
std::vector<Tensor> split_with_sizes_copy(const Tensor& input, IntList split_sizes, int64_t dim) {
    return copies(ops::split_with_sizes(input, split_sizes, dim));
}
std::vector<Tensor> unbind_copy(const Tensor& input, int64_t dim) { return copies(ops::unbind(input, dim)); }

}  // namespace rushlight::composites
