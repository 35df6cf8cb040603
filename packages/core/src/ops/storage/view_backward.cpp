// Gradients of views. Each takes the same view of a new tensor of zeros and writes the gradient to it.
#include "bodies/view_backward.h"
#include "bodies/slicing.h"
#include "ops/copying.h"
#include "ops/create.h"
#include "ops/fresh.h"
#include "ops/views.h"
#include "rushlight/ops/add.h"

namespace rushlight::storage {
namespace {

Tensor zeros_for(const Tensor& grad, IntList sizes, DType dtype) {
    Tensor base = make_tensor(sizes, dtype, grad.device());
    fill_with(base, Scalar(0));
    return base;
}
Tensor zeros_for(const Tensor& grad, IntList sizes) { return zeros_for(grad, sizes, grad.dtype()); }

void check_grad(const char* op, const ViewSpec& spec, const Tensor& grad) {
    const IntList shape(spec.sizes, static_cast<size_t>(spec.ndim));
    RL_CHECK(std::ranges::equal(shape, grad.sizes()), throw_runtime,
             "%s(grad): needs the view's shape %s, got %s", op, to_string(shape).c_str(),
             to_string(grad.sizes()).c_str());
}

Tensor position(const char* op, const Tensor& base, const ViewSpec& spec, const Tensor& grad) {
    check_grad(op, spec, grad);
    copy_into(take_view(base, spec), grad);
    return base;
}

}  // namespace

Tensor select_backward(const Tensor& grad, IntList input_sizes, int64_t dim, int64_t index) {
    Tensor base = zeros_for(grad, input_sizes);
    return position("select_backward", base, views::select(base, dim, index), grad);
}
Tensor slice_backward(const Tensor& grad, IntList input_sizes, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> end, int64_t step) {
    Tensor base = zeros_for(grad, input_sizes);
    return position("slice_backward", base, views::slice(base, dim, start, end, step), grad);
}
Tensor narrow_backward(const Tensor& grad, IntList input_sizes, int64_t dim, int64_t start, int64_t length) {
    Tensor base = zeros_for(grad, input_sizes);
    return position("narrow_backward", base, views::narrow(base, dim, start, length), grad);
}
Tensor diagonal_backward(const Tensor& grad, IntList input_sizes, int64_t offset, int64_t dim1,
                         int64_t dim2) {
    Tensor base = zeros_for(grad, input_sizes);
    return position("diagonal_backward", base, views::diagonal(base, offset, dim1, dim2), grad);
}
Tensor unfold_backward(const Tensor& grad, IntList input_sizes, int64_t dimension, int64_t size,
                       int64_t step) {
    // If windows overlap, half precision is summed in float32 and rounded once.
    Tensor base = zeros_for(grad, input_sizes, size > step ? compute_dtype(grad.dtype()) : grad.dtype());
    // Windows may overlap, but the k-th elements of all windows are distinct. So each k needs one addition.
    StagesOff stages(kAllStages);
    ViewSpec windows = views::unfold(base, dimension, size, step);
    check_grad("unfold_backward", windows, grad);
    for (int64_t k = 0; k < size; ++k) {
        const Tensor all = take_view(base, windows);
        ops::add_(take_view(all, views::select(all, -1, k)), take_view(grad, views::select(grad, -1, k)));
    }
    if (base.dtype() == grad.dtype()) return fresh(base);
    Tensor rounded = make_tensor(input_sizes, grad.dtype(), grad.device());
    copy_into(rounded, base);
    return rounded;
}

}  // namespace rushlight::storage
