#include <cmath>

#include "bodies/random.h"
#include "ops/numbers.h"
#include "rushlight/backend.h"

namespace rushlight::rules {
namespace {

// Whether an integer is in the range of a dtype.
bool fits(int64_t value, DType t) {
    if (is_differentiable(t)) return std::abs(static_cast<double>(value)) <= largest_number(t);
    return t == DType::Bool ? value == 0 || value == 1 : fits_integer(Scalar(value), t);
}

}  // namespace

Outputs uniform_(const Tensor& input, double from, double to, Generator*) {
    if (!is_complex(input.dtype())) floating_only("uniform_", input);
    RL_CHECK(from <= to, throw_runtime, "uniform_(from, to): needs from <= to, got %g and %g", from, to);
    const double largest = largest_number(input.dtype());
    RL_CHECK(from >= -largest && to <= largest && to - from <= largest, throw_runtime,
             "uniform_(from, to): from, to and to - from must be finite in dtype %s, got %g and %g",
             name(input.dtype()), from, to);
    return {};
}
Outputs normal_(const Tensor& input, double, double std, Generator*) {
    if (!is_complex(input.dtype())) floating_only("normal_", input);
    RL_CHECK(std >= 0, throw_runtime, "normal_(std): must not be negative, got %g", std);
    return {};
}
Outputs exponential_(const Tensor& input, double lambd, Generator*) {
    floating_only("exponential_", input);
    RL_CHECK(lambd > 0, throw_runtime, "exponential_(lambd): must be positive, got %g", lambd);
    return {};
}
Outputs geometric_(const Tensor& input, double p, Generator*) {
    RL_CHECK(input.dtype() != DType::Bool, throw_not_implemented,
             "geometric_(input): not defined for dtype bool");
    RL_CHECK(p > 0 && p < 1, throw_runtime, "geometric_(p): must be greater than 0 and less than 1, got %g",
             p);
    return {};
}
Outputs cauchy_(const Tensor& input, double, double sigma, Generator*) {
    RL_CHECK(is_floating(input.dtype()), throw_runtime, "cauchy_(input): needs a floating dtype, got %s",
             name(input.dtype()));
    RL_CHECK(sigma > 0, throw_runtime, "cauchy_(sigma): must be positive, got %g", sigma);
    return {};
}
Outputs log_normal_(const Tensor& input, double, double std, Generator*) {
    floating_only("log_normal_", input);
    RL_CHECK(std > 0, throw_runtime, "log_normal_(std): must be positive, got %g", std);
    return {};
}
Outputs bernoulli_(const Tensor&, double p, Generator*) {
    RL_CHECK(p >= 0 && p <= 1, throw_runtime, "bernoulli_(p): must be from 0 to 1, got %g", p);
    return {};
}
// A `range` of 0 means 2^64.
Outputs _integers_(const Tensor& input, int64_t low, int64_t range, Generator*) {
    const auto last = static_cast<int64_t>(static_cast<uint64_t>(low) + static_cast<uint64_t>(range) - 1);
    RL_CHECK(fits(low, input.dtype()) && fits(last, input.dtype()), throw_runtime,
             "random_(low, high): dtype %s cannot represent all integers from %lld to %lld",
             name(input.dtype()), (long long)low, (long long)last);
    return {};
}

Outputs bernoulli(const Tensor& input, Generator*) {
    floating_only("bernoulli", input);
    Outputs out;
    out.like(input);
    return out;
}

Outputs poisson(const Tensor& input, Generator*) {
    floating_only("poisson", input);
    Outputs out;
    out.like(input);
    return out;
}

Outputs multinomial(const Tensor& input, int64_t num_samples, bool replacement, Generator*) {
    floating_only("multinomial", input);
    RL_CHECK(input.dim() == 1 || input.dim() == 2, throw_runtime,
             "multinomial(input): needs 1 or 2 dimensions, got shape %s", to_string(input.sizes()).c_str());
    RL_CHECK(num_samples > 0, throw_runtime, "multinomial(num_samples): must be positive, got %lld",
             (long long)num_samples);
    RL_CHECK(replacement || num_samples <= input.size(-1), throw_runtime,
             "multinomial(num_samples): %lld samples cannot be drawn without replacement from %lld weights",
             (long long)num_samples, (long long)input.size(-1));
    int64_t sizes[] = {input.size(0), num_samples};
    Outputs out;
    out.add(input.dim() == 1 ? IntList(sizes + 1, 1) : IntList(sizes, 2), DType::Int64, input.device());
    return out;
}

Outputs _randperm(int64_t n, std::optional<Device> device, Generator*) {
    RL_CHECK(n >= 0, throw_runtime, "randperm(n): must not be negative, got %lld", (long long)n);
    Outputs out;
    out.add(IntList(&n, 1), DType::Int64, resolve(device.value_or(Device{})));
    return out;
}

Outputs _dropout(const Tensor& input, double) {
    floating_only("dropout", input);
    Outputs out;
    out.like(input);
    out.add(input.sizes(), DType::Bool, input.device());
    return out;
}

Outputs _dropout_mask(const Tensor& input, int64_t columns, double) {
    floating_only("dropout", input);
    RL_CHECK(
        input.dim() > 0 && columns >= 0, throw_runtime,
        "dropout_mask(input, columns): needs at least one dimension and columns >= 0, got shape %s and %lld",
        to_string(input.sizes()).c_str(), (long long)columns);
    std::vector<int64_t> sizes = input.shape();
    sizes.back() = columns;
    Outputs out;
    out.add(sizes, DType::Bool, input.device());
    return out;
}

}  // namespace rushlight::rules
