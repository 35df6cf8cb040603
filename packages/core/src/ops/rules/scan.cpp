// Scans (cumulative sums, products, maxima and minima). Results have the input's shape.
#include "bodies/scan.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

Outputs along(const char* op, const Tensor& input, int64_t dim, DType dtype) {
    wrap_dim(op, dim, input.dim());
    Outputs outs;
    outs.add(input.sizes(), dtype, input.device());
    return outs;
}

Outputs accumulated(const char* op, const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return along(op, input, dim,
                 dtype.value_or(is_integral(input.dtype(), true) ? DType::Int64 : input.dtype()));
}

Outputs extreme(const char* op, const Tensor& input, int64_t dim) {
    RL_CHECK(!is_complex(input.dtype()), throw_not_implemented, "%s: not defined for dtype %s", op,
             name(input.dtype()));
    Outputs outs = along(op, input, dim, input.dtype());
    outs.add(input.sizes(), DType::Int64, input.device());
    return outs;
}

void differentiable_only(const char* op, const Tensor& t) {
    RL_CHECK(is_differentiable(t.dtype()), throw_not_implemented,
             "%s: needs a floating-point tensor, got dtype %s", op, name(t.dtype()));
}

}  // namespace

Outputs cumsum(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return accumulated("cumsum", input, dim, dtype);
}
Outputs cumprod(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
    return accumulated("cumprod", input, dim, dtype);
}

Outputs cummax(const Tensor& input, int64_t dim) { return extreme("cummax", input, dim); }
Outputs cummin(const Tensor& input, int64_t dim) { return extreme("cummin", input, dim); }

Outputs logcumsumexp(const Tensor& input, int64_t dim) {
    differentiable_only("logcumsumexp", input);
    return along("logcumsumexp", input, dim, input.dtype());
}

Outputs _recurrence(const Tensor& factors, const Tensor& terms, int64_t dim, bool) {
    RL_CHECK(factors.dtype() == terms.dtype() && factors.shape() == terms.shape(), throw_runtime,
             "_recurrence(factors): must have the dtype and shape of terms, %s %s, got %s %s",
             name(terms.dtype()), to_string(terms.sizes()).c_str(), name(factors.dtype()),
             to_string(factors.sizes()).c_str());
    differentiable_only("_recurrence", terms);
    return along("_recurrence", terms, dim, terms.dtype());
}

}  // namespace rushlight::rules
