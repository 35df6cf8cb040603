#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "bodies/random.h"
#include "ops/element_check.h"
#include "ops/fresh.h"
#include "rushlight/backend.h"
#include "rushlight/half.h"
#include "rushlight/ops/_dropout.h"
#include "rushlight/ops/_integers_.h"
#include "rushlight/ops/_randperm.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/bernoulli.h"
#include "rushlight/ops/bernoulli_.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/empty.h"
#include "rushlight/ops/empty_like.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/normal_.h"
#include "rushlight/ops/randn.h"
#include "rushlight/ops/uniform_.h"

namespace rushlight::composites {
namespace {

using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;

void check_not_negative(const Tensor& std) { check_elements("normal", "std", std, Required::NotNegative); }

// Fills a new tensor, which is not part of a graph.
template <class Fill>
Tensor filled(Tensor t, bool requires_grad, Fill fill) {
    fill(t);
    if (requires_grad) t.set_requires_grad(true);
    return fresh(std::move(t));
}

// Fills with random integers from `low` to `low` + `range` - 1. A `range` of 0 means 2^64.
Tensor integers_of_range(const Tensor& t, int64_t low, uint64_t range, Generator* generator) {
    return ops::_integers_(t, low, static_cast<int64_t>(range), generator);
}

// Returns one more than the largest integer up to which the dtype represents all integers exactly.
uint64_t exact_integers(DType t) {
    switch (t) {
        case DType::Bool: return 2;
        case DType::UInt8: return 256;
        case DType::Int8: return 128;
        case DType::Int16: return 32768;
        case DType::UInt16: return 65536;
        case DType::Int32: return uint64_t{1} << 31;
        case DType::UInt32: return uint64_t{1} << 32;
        case DType::Float16: return (1 << 11) + 1;
        case DType::BFloat16: return (1 << 8) + 1;
        case DType::Float32: return (1 << 24) + 1;
        case DType::Float64: return (uint64_t{1} << 53) + 1;
        default: return uint64_t{1} << 63;
    }
}

// Returns an integer rounded to a floating-point dtype.
double rounded(int64_t value, DType t) {
    const auto single = static_cast<float>(value);
    switch (t) {
        case DType::Float16: return static_cast<float>(Half(single));
        case DType::BFloat16: return static_cast<float>(BFloat16(single));
        case DType::Float64: return static_cast<double>(value);
        default: return single;
    }
}

// The distance between neighbouring numbers of a floating-point dtype near an integer.
int64_t spacing(int64_t value, DType t) {
    const int digits = std::bit_width(exact_integers(t) - 1) - 1;  // 2^digits is the last exact integer
    const int size = std::ilogb(static_cast<double>(value));
    return size < digits ? 1 : int64_t{1} << (size - digits + 1);
}

// Moves the ends of a range inwards, so that integers from the range that are rounded to a floating-point dtype stay in the
// range. The ends are moved by the same amounts as in PyTorch.
void fit_range(DType t, int64_t& low, int64_t& high) {
    if (!is_floating(t)) return;
    const auto least = static_cast<double>(low), end = static_cast<double>(high);
    constexpr double kMost = 0x1p62;  // the ends of larger ranges are not moved
    if (std::abs(least) > kMost || std::abs(end) > kMost) return;
    if (const double last = rounded(high - 1, t); last >= end)
        high = static_cast<int64_t>(last) - spacing(high - 1, t);
    if (const double first = rounded(low + 1, t); first < least)
        low = static_cast<int64_t>(first) + spacing(low + 1, t);
    if (rounded(low, t) < least) low = static_cast<int64_t>(rounded(low, t)) + spacing(low, t);
    if (rounded(high - 1, t) >= end)
        high = static_cast<int64_t>(rounded(high - 1, t)) - spacing(high - 1, t) + 1;
}

// Fills with random integers from `low` to `high` - 1, without overflow.
Tensor integers(const char* op, const Tensor& t, int64_t low, int64_t high, Generator* generator) {
    RL_CHECK(low < high, throw_runtime, "%s(low, high): low must be less than high, got %lld and %lld", op,
             (long long)low, (long long)high);
    fit_range(t.dtype(), low, high);
    RL_CHECK(low < high, throw_runtime, "%s(low, high): dtype %s cannot represent any integer in the range",
             op, name(t.dtype()));
    return integers_of_range(t, low, static_cast<uint64_t>(high) - static_cast<uint64_t>(low), generator);
}

}  // namespace

Tensor bernoulli__tensor(const Tensor& input, const Tensor& p, Generator* generator) {
    Tensor probabilities =
        ops::expand(is_floating(p.dtype()) ? p : ops::_to_copy(p, default_dtype()), input.sizes(), false);
    return ops::copy_(input, ops::bernoulli(ops::detach(probabilities), generator), false);
}
Tensor bernoulli_p(const Tensor& input, double p, Generator* generator) {
    return fresh(ops::bernoulli_(ops::empty_like(ops::detach(input)), p, generator));
}

Tensor random_(const Tensor& input, Generator* generator) {
    return integers_of_range(input, 0, exact_integers(input.dtype()), generator);
}
Tensor random__to(const Tensor& input, int64_t to, Generator* generator) {
    return integers("random_", input, 0, to, generator);
}
Tensor random__from(const Tensor& input, int64_t from, std::optional<int64_t> to, Generator* generator) {
    if (to) return integers("random_", input, from, *to, generator);
    const uint64_t end = exact_integers(input.dtype());
    RL_CHECK(from < 0 || static_cast<uint64_t>(from) < end, throw_runtime,
             "random_(from): must be less than the default of `to`, got from=%lld and to=%llu",
             (long long)from, (unsigned long long)end);
    return integers_of_range(input, from, end - static_cast<uint64_t>(from), generator);
}

Tensor rand(IntList size, Generator* generator, OptDType dtype, OptDevice device, bool requires_grad) {
    return filled(ops::empty(size, dtype, device), requires_grad,
                  [&](const Tensor& t) { ops::uniform_(t, 0, 1, generator); });
}
Tensor rand_like(const Tensor& input, OptDType dtype, OptDevice device, bool requires_grad,
                 std::optional<std::string_view> memory_format, Generator* generator) {
    return filled(ops::empty_like(ops::detach(input), dtype, device, false, memory_format), requires_grad,
                  [&](const Tensor& t) { ops::uniform_(t, 0, 1, generator); });
}
Tensor randn(IntList size, Generator* generator, OptDType dtype, OptDevice device, bool requires_grad) {
    return filled(ops::empty(size, dtype, device), requires_grad,
                  [&](const Tensor& t) { ops::normal_(t, 0, 1, generator); });
}
Tensor randn_like(const Tensor& input, OptDType dtype, OptDevice device, bool requires_grad,
                  std::optional<std::string_view> memory_format, Generator* generator) {
    return filled(ops::empty_like(ops::detach(input), dtype, device, false, memory_format), requires_grad,
                  [&](const Tensor& t) { ops::normal_(t, 0, 1, generator); });
}
Tensor randint_low(int64_t low, int64_t high, IntList size, Generator* generator, OptDType dtype,
                   OptDevice device, bool requires_grad) {
    return filled(ops::empty(size, dtype.value_or(DType::Int64), device), requires_grad,
                  [&](const Tensor& t) { integers("randint", t, low, high, generator); });
}
Tensor randint(int64_t high, IntList size, Generator* generator, OptDType dtype, OptDevice device,
               bool requires_grad) {
    return randint_low(0, high, size, generator, dtype, device, requires_grad);
}
Tensor randint_like_low(const Tensor& input, int64_t low, int64_t high, OptDType dtype, OptDevice device,
                        bool requires_grad, std::optional<std::string_view> memory_format,
                        Generator* generator) {
    return filled(ops::empty_like(ops::detach(input), dtype, device, false, memory_format), requires_grad,
                  [&](const Tensor& t) { integers("randint_like", t, low, high, generator); });
}
Tensor randint_like(const Tensor& input, int64_t high, OptDType dtype, OptDevice device, bool requires_grad,
                    std::optional<std::string_view> memory_format, Generator* generator) {
    return randint_like_low(input, 0, high, dtype, device, requires_grad, memory_format, generator);
}
Tensor randperm(int64_t n, Generator* generator, OptDType dtype, OptDevice device, bool requires_grad) {
    RL_CHECK(!dtype || !is_float8(*dtype), throw_not_implemented, "randperm: not defined for dtype %s",
             name(*dtype));
    const uint64_t most = exact_integers(dtype.value_or(DType::Int64));
    RL_CHECK(n < 0 || static_cast<uint64_t>(n) <= most, throw_runtime,
             "randperm(n): dtype %s represents only integers below %llu exactly, got %lld", name(*dtype),
             (unsigned long long)most, (long long)n);
    Tensor order = ops::_randperm(n, device, generator);
    if (dtype && *dtype != DType::Int64) order = ops::_to_copy(order, dtype);
    return filled(order, requires_grad, [](const Tensor&) {});
}

Tensor normal(const Tensor& mean, const Tensor& std, Generator* generator) {
    check_not_negative(std);
    Tensor sum = ops::add(mean, std);  // has the broadcast shape and the common dtype
    Tensor z = ops::normal_(ops::empty_like(ops::detach(sum)), 0, 1, generator);
    return ops::add(ops::mul(z, std), mean);
}
Tensor normal_number_std(const Tensor& mean, double std, Generator* generator) {
    return ops::add(ops::normal_(ops::empty_like(ops::detach(mean)), 0, std, generator), mean);
}
Tensor normal_number_mean(double mean, const Tensor& std, Generator* generator) {
    check_not_negative(std);
    Tensor z = ops::normal_(ops::empty_like(ops::detach(std)), 0, 1, generator);
    return ops::add(ops::mul(z, std), Scalar(mean));
}
Tensor normal_numbers(double mean, double std, IntList size, Generator* generator, OptDType dtype,
                      OptDevice device, bool requires_grad) {
    return filled(ops::empty(size, dtype, device), requires_grad,
                  [&](const Tensor& t) { ops::normal_(t, mean, std, generator); });
}

Tensor dropout(const Tensor& input, double p, bool train) {
    RL_CHECK(p >= 0 && p <= 1, throw_runtime, "dropout(p): must lie between 0 and 1, got %g", p);
    if (!train || p == 0 || input.numel() == 0) return input;
    return p == 1 ? ops::mul(input, Scalar(0.0)) : ops::_dropout(input, p);
}

}  // namespace rushlight::composites
