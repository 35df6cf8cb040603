// Softmax. Results have the input's shape and dtype.
#include "bodies/softmax.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

Outputs along(const char* op, const Tensor& input, int64_t dim) {
    floating_only(op, input);
    wrap_dim(op, dim, input.dim());
    Outputs outs;
    outs.like(input);
    return outs;
}

Outputs back(const char* op, const Tensor& grad, const Tensor& result, int64_t dim) {
    same_dtype(op, "grad", grad, "result", result);
    RL_CHECK(
        std::equal(grad.sizes().begin(), grad.sizes().end(), result.sizes().begin(), result.sizes().end()),
        throw_runtime, "%s(grad): needs the result's shape %s, got %s", op, to_string(result.sizes()).c_str(),
        to_string(grad.sizes()).c_str());
    return along(op, grad, dim);
}

}  // namespace

Outputs softmax(const Tensor& input, int64_t dim) { return along("softmax", input, dim); }
Outputs log_softmax(const Tensor& input, int64_t dim) { return along("log_softmax", input, dim); }
Outputs softmax_backward(const Tensor& grad, const Tensor& result, int64_t dim) {
    return back("softmax_backward", grad, result, dim);
}
Outputs log_softmax_backward(const Tensor& grad, const Tensor& result, int64_t dim) {
    return back("log_softmax_backward", grad, result, dim);
}

}  // namespace rushlight::rules
