#include "bodies/pooling.h"

namespace rushlight::rules {
namespace {

// The dimensions that may be empty. For means, all dimensions may be empty, because the mean of no elements is NaN.
enum class Empty { Batch, First, Planes, All };

void check_input(const char* op, IntList input, int pooled, Empty empty) {
    const auto n = static_cast<int>(std::min<size_t>(input.size(), kMaxDims));
    RL_CHECK(n == pooled + 1 || n == pooled + 2, throw_runtime,
             "%s(input): needs %d or %d dimensions, got shape %s", op, pooled + 1, pooled + 2,
             to_string(input).c_str());
    const int full[] = {n - pooled - 1, 1, n - pooled, n};
    for (int d = full[static_cast<int>(empty)]; d < n; ++d)
        RL_CHECK(input[static_cast<size_t>(d)] > 0, throw_runtime,
                 "%s(input): shape %s has no elements along dimension %d, but only the batch may be empty",
                 op, to_string(input).c_str(), d);
}

// The parameters of pooling windows, and their checks. `at` returns the parameter of a dimension.
struct Windows {
    const char* op;
    int pooled;
    IntList kernel_size, stride, padding, dilation;

    int64_t at(IntList list, int d) const {
        return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)];
    }
    void check() const {
        check_list("kernel_size", kernel_size, 1);
        if (!stride.empty()) check_list("stride", stride, 1);
        check_list("padding", padding, 0);
        check_list("dilation", dilation, 1);
        for (int d = 0; d < pooled; ++d)
            RL_CHECK(2 * at(padding, d) <= at(kernel_size, d), throw_runtime,
                     "%s(padding): must be at most half of the kernel size %lld, got %lld", op,
                     (long long)at(kernel_size, d), (long long)at(padding, d));
    }
    int64_t count(int d, int64_t size, bool ceil_mode) const {
        RL_CHECK(size < int64_t{1} << 59, throw_runtime, "%s(input): a dimension of size %lld is too large",
                 op, (long long)size);
        int64_t pad = at(padding, d), step = at(stride.empty() ? kernel_size : stride, d);
        int64_t room = size + 2 * pad - at(dilation, d) * (at(kernel_size, d) - 1) - 1;
        room += ceil_mode ? step - 1 : 0;
        int64_t n = (room < 0 ? -1 : room / step) + 1;
        // The last window must begin inside the input or inside the padding before it.
        if (ceil_mode && (n - 1) * step >= size + pad) --n;
        RL_CHECK(
            n > 0, throw_runtime,
            "%s(kernel_size): a window of %lld elements does not fit a dimension of size %lld with padding %lld",
            op, (long long)(at(dilation, d) * (at(kernel_size, d) - 1) + 1), (long long)size, (long long)pad);
        return n;
    }

  private:
    void check_list(const char* name, IntList list, int64_t least) const {
        RL_CHECK(list.size() == 1 || list.size() == static_cast<size_t>(pooled), throw_runtime,
                 "%s(%s): needs 1 or %d numbers, got %s", op, name, pooled, to_string(list).c_str());
        // With larger numbers, products of them would overflow.
        for (int64_t v : list)
            RL_CHECK(v >= least && v <= INT32_MAX, throw_runtime,
                     "%s(%s): numbers must be at least %lld and below 2^31, got %s", op, name,
                     (long long)least, to_string(list).c_str());
    }
};

struct Pooled {
    int64_t sizes[5];
    size_t ndim;
    IntList shape() const { return {sizes, ndim}; }
};

Pooled pool_shape(const Windows& w, IntList input, bool ceil_mode) {
    check_input(w.op, input, w.pooled, Empty::Batch);
    w.check();
    Pooled p;
    p.ndim = input.size();
    std::copy(input.begin(), input.end(), p.sizes);
    for (int d = 0; d < w.pooled; ++d) {
        size_t at = p.ndim - static_cast<size_t>(w.pooled - d);
        p.sizes[at] = w.count(d, p.sizes[at], ceil_mode);
    }
    return p;
}

Outputs max_pool(const char* op, int pooled, const Tensor& input, IntList kernel_size, IntList stride,
                 IntList padding, IntList dilation, bool ceil_mode) {
    Pooled p = pool_shape({op, pooled, kernel_size, stride, padding, dilation}, input.sizes(), ceil_mode);
    check_defined(is_floating(input.dtype()) || is_integral(input.dtype()), op, input.dtype());
    Outputs out;
    out.add(p.shape(), input.dtype(), input.device());
    out.add(p.shape(), DType::Int64, input.device());
    return out;
}

Outputs avg_pool(const char* op, int pooled, const Tensor& input, IntList kernel_size, IntList stride,
                 IntList padding, bool ceil_mode, std::optional<int64_t> divisor_override) {
    if (input.dtype() != DType::Int64) floating_only(op, input);
    RL_CHECK(!divisor_override || *divisor_override != 0, throw_runtime,
             "%s(divisor_override): must not be zero", op);
    Pooled p = pool_shape({op, pooled, kernel_size, stride, padding, kInts<1>}, input.sizes(), ceil_mode);
    Outputs out;
    out.add(p.shape(), input.dtype(), input.device());
    return out;
}

Pooled adaptive_shape(const char* op, int pooled, const Tensor& input, IntList output_size, bool mean) {
    const bool single = std::ranges::all_of(output_size, [](int64_t n) { return n == 1; });
    check_input(op, input.sizes(), pooled, !mean ? Empty::First : single ? Empty::All : Empty::Planes);
    RL_CHECK(output_size.size() == static_cast<size_t>(pooled), throw_runtime,
             "%s(output_size): needs %d numbers, got %s", op, pooled, to_string(output_size).c_str());
    Pooled p;
    p.ndim = static_cast<size_t>(input.dim());
    std::copy(input.sizes().begin(), input.sizes().end(), p.sizes);
    for (int d = 0; d < pooled; ++d) {
        RL_CHECK(output_size[d] >= 0, throw_runtime, "%s(output_size): must not be negative, got %s", op,
                 to_string(output_size).c_str());
        p.sizes[p.ndim - static_cast<size_t>(pooled - d)] = output_size[d];
    }
    return p;
}

Outputs adaptive_avg(const char* op, int pooled, const Tensor& input, IntList output_size) {
    floating_only(op, input);
    Outputs out;
    out.add(adaptive_shape(op, pooled, input, output_size, true).shape(), input.dtype(), input.device());
    return out;
}
Outputs adaptive_max(const char* op, int pooled, const Tensor& input, IntList output_size) {
    floating_only(op, input);
    Pooled p = adaptive_shape(op, pooled, input, output_size, false);
    Outputs out;
    out.add(p.shape(), input.dtype(), input.device());
    out.add(p.shape(), DType::Int64, input.device());
    return out;
}

Outputs gradient(const char* op, int pooled, const Tensor& grad, IntList input_sizes,
                 Empty empty = Empty::Planes) {
    floating_only(op, grad);
    check_input(op, input_sizes, pooled, empty);
    const auto n = static_cast<size_t>(grad.dim());
    const size_t planes = input_sizes.size() - static_cast<size_t>(pooled);
    const bool fits = n == input_sizes.size() &&
                      std::equal(input_sizes.begin(), input_sizes.begin() + planes, grad.sizes().begin());
    RL_CHECK(fits, throw_runtime, "%s(grad, input_sizes): shape %s is not the result of pooling shape %s", op,
             to_string(grad.sizes()).c_str(), to_string(input_sizes).c_str());
    Outputs out;
    out.add(input_sizes, grad.dtype(), grad.device());
    return out;
}

Outputs max_gradient(const char* op, int pooled, const Tensor& grad, const Tensor& indices,
                     IntList input_sizes) {
    RL_CHECK(indices.dtype() == DType::Int64 && std::ranges::equal(indices.sizes(), grad.sizes()),
             throw_runtime, "%s(indices): needs an int64 index for each element of grad, %s, got %s %s", op,
             to_string(grad.sizes()).c_str(), name(indices.dtype()), to_string(indices.sizes()).c_str());
    return gradient(op, pooled, grad, input_sizes);
}

Outputs avg_gradient(const Windows& w, const Tensor& grad, IntList input_sizes, bool ceil_mode,
                     std::optional<int64_t> divisor_override) {
    Outputs out = gradient(w.op, w.pooled, grad, input_sizes);
    RL_CHECK(!divisor_override || *divisor_override != 0, throw_runtime,
             "%s(divisor_override): must not be zero", w.op);
    const Pooled p = pool_shape(w, input_sizes, ceil_mode);
    RL_CHECK(std::ranges::equal(p.shape(), grad.sizes()), throw_runtime,
             "%s(grad): needs the result's shape %s, got %s", w.op, to_string(p.shape()).c_str(),
             to_string(grad.sizes()).c_str());
    return out;
}

}  // namespace

Outputs max_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool ceil_mode) {
    return max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode);
}
Outputs max_pool2d_with_indices(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                                IntList dilation, bool ceil_mode) {
    return max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode);
}
Outputs max_pool2d_backward(const Tensor& grad, const Tensor& indices, IntList input_sizes) {
    return max_gradient("max_pool2d_backward", 2, grad, indices, input_sizes);
}
Outputs avg_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                   bool, std::optional<int64_t> divisor_override) {
    return avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, divisor_override);
}
Outputs avg_pool2d_backward(const Tensor& grad, IntList input_sizes, IntList kernel_size, IntList stride,
                            IntList padding, bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
    return avg_gradient({"avg_pool2d_backward", 2, kernel_size, stride, padding, kInts<1>}, grad, input_sizes,
                        ceil_mode, divisor_override);
}
Outputs adaptive_avg_pool2d(const Tensor& input, IntList output_size) {
    return adaptive_avg("adaptive_avg_pool2d", 2, input, output_size);
}
Outputs adaptive_avg_pool2d_backward(const Tensor& grad, IntList input_sizes) {
    return gradient("adaptive_avg_pool2d_backward", 2, grad, input_sizes, Empty::All);
}
Outputs adaptive_max_pool2d(const Tensor& input, IntList output_size) {
    return adaptive_max("adaptive_max_pool2d", 2, input, output_size);
}

Outputs max_pool3d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                   IntList dilation, bool ceil_mode) {
    return max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode);
}
Outputs max_pool3d_with_indices(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                                IntList dilation, bool ceil_mode) {
    return max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode);
}
Outputs max_pool3d_backward(const Tensor& grad, const Tensor& indices, IntList input_sizes) {
    return max_gradient("max_pool3d_backward", 3, grad, indices, input_sizes);
}
Outputs avg_pool3d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                   bool, std::optional<int64_t> divisor_override) {
    return avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, divisor_override);
}
Outputs avg_pool3d_backward(const Tensor& grad, IntList input_sizes, IntList kernel_size, IntList stride,
                            IntList padding, bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
    return avg_gradient({"avg_pool3d_backward", 3, kernel_size, stride, padding, kInts<1>}, grad, input_sizes,
                        ceil_mode, divisor_override);
}
Outputs adaptive_avg_pool3d(const Tensor& input, IntList output_size) {
    return adaptive_avg("adaptive_avg_pool3d", 3, input, output_size);
}
Outputs adaptive_avg_pool3d_backward(const Tensor& grad, IntList input_sizes) {
    return gradient("adaptive_avg_pool3d_backward", 3, grad, input_sizes, Empty::All);
}
Outputs adaptive_max_pool3d(const Tensor& input, IntList output_size) {
    return adaptive_max("adaptive_max_pool3d", 3, input, output_size);
}

}  // namespace rushlight::rules
