#include "bodies/resampling.h"
#include "ops/views.h"

namespace rushlight::rules {
namespace {

Outputs resized(const Tensor& t, int64_t dim, int64_t size, int64_t mode, bool antialias) {
    const char* op = "interpolate";
    floating_only(op, t);
    const int d = wrap_dim(op, dim, t.dim());
    const bool smooth = mode == 2 || mode == 3;
    RL_CHECK(mode >= 0 && mode <= 3, throw_value,
             "%s(mode): got %lld, needs 0 (nearest), 1 (nearest-exact), 2 (linear) or 3 (cubic)", op,
             (long long)mode);
    RL_CHECK(smooth || !antialias, throw_value, "%s(antialias): needs mode 2 (linear) or 3 (cubic), got %lld",
             op, (long long)mode);
    RL_CHECK(t.dim() > 0 && t.sizes()[d] > 0 && size > 0, throw_runtime,
             "%s(input, size): sizes must be positive, got %s and %lld for dimension %d", op,
             to_string(t.sizes()).c_str(), (long long)size, d);
    int64_t sizes[kMaxDims];
    std::copy(t.sizes().begin(), t.sizes().end(), sizes);
    sizes[d] = size;
    Outputs outs;
    outs.add(IntList(sizes, static_cast<size_t>(t.dim())), t.dtype(), t.device());
    return outs;
}

}  // namespace

Outputs resample(const Tensor& input, int64_t dim, int64_t size, int64_t mode, bool, std::optional<double>,
                 bool antialias) {
    return resized(input, dim, size, mode, antialias);
}

Outputs resample_backward(const Tensor& grad, int64_t dim, int64_t size, int64_t mode, bool,
                          std::optional<double>, bool antialias) {
    return resized(grad, dim, size, mode, antialias);
}

Outputs grid_sample(const Tensor& input, const Tensor& grid, int64_t, int64_t, bool) {
    RL_CHECK((input.dim() == 4 || input.dim() == 5) && grid.dim() == input.dim() &&
                 grid.sizes().back() == input.dim() - 2,
             throw_runtime, "grid_sample(input, grid): shapes %s and %s do not match",
             to_string(input.sizes()).c_str(), to_string(grid.sizes()).c_str());
    for (int64_t n : input.sizes().subspan(2))
        RL_CHECK(n > 0, throw_runtime, "grid_sample(input): shape %s has no elements to sample",
                 to_string(input.sizes()).c_str());
    int64_t sizes[kMaxDims] = {input.sizes()[0], input.sizes()[1]};
    std::copy(grid.sizes().begin() + 1, grid.sizes().end() - 1, sizes + 2);
    Outputs outs;
    outs.add(IntList(sizes, static_cast<size_t>(input.dim())), input.dtype(), input.device());
    return outs;
}

}  // namespace rushlight::rules
