// Linear algebra composed of products and sums.
#include <cmath>

#include "bodies/linalg.h"
#include "ops/checks.h"
#include "ops/fresh.h"
#include "ops/views.h"
#include "rushlight/batched.h"
#include "rushlight/ops/_to_copy.h"
#include "rushlight/ops/abs.h"
#include "rushlight/ops/add.h"
#include "rushlight/ops/amax.h"
#include "rushlight/ops/amin.h"
#include "rushlight/ops/cat.h"
#include "rushlight/ops/clone.h"
#include "rushlight/ops/conj.h"
#include "rushlight/ops/contiguous.h"
#include "rushlight/ops/copy_.h"
#include "rushlight/ops/detach.h"
#include "rushlight/ops/diagonal.h"
#include "rushlight/ops/exp.h"
#include "rushlight/ops/expand.h"
#include "rushlight/ops/eye.h"
#include "rushlight/ops/flatten.h"
#include "rushlight/ops/flip.h"
#include "rushlight/ops/gt.h"
#include "rushlight/ops/linalg_inv.h"
#include "rushlight/ops/linalg_svdvals.h"
#include "rushlight/ops/matmul.h"
#include "rushlight/ops/mm.h"
#include "rushlight/ops/movedim.h"
#include "rushlight/ops/mul.h"
#include "rushlight/ops/narrow.h"
#include "rushlight/ops/new_empty.h"
#include "rushlight/ops/new_ones.h"
#include "rushlight/ops/norm.h"
#include "rushlight/ops/reshape.h"
#include "rushlight/ops/squeeze.h"
#include "rushlight/ops/sum.h"
#include "rushlight/ops/to.h"
#include "rushlight/ops/unsqueeze.h"
#include "rushlight/ops/where.h"
#include "rushlight/ops/zeros_like.h"

namespace rushlight::composites {
namespace {

void check_floating(const char* op, const Tensor& t) {
    RL_CHECK(is_differentiable(t.dtype()), throw_runtime,
             "linalg.%s(input): needs a floating-point tensor, got %s", op, name(t.dtype()));
}

void check_square(const char* op, const Tensor& t) {
    RL_CHECK(t.dim() >= 2 && t.size(-1) == t.size(-2), throw_runtime,
             "linalg.%s(input): needs square matrices, got shape %s", op, to_string(t.sizes()).c_str());
}

Tensor identity_like(const Tensor& t) {
    return ops::expand(ops::eye(t.size(-1), std::nullopt, t.dtype(), t.device()), t.sizes(), false);
}

// Converts `dim` to two different dimensions that are not negative.
void check_pair(const char* op, const Tensor& input, IntList dim, int64_t* pair) {
    RL_CHECK(dim.size() == 2, throw_runtime, "linalg.%s(dim): needs two dimensions, got %s", op,
             to_string(dim).c_str());
    RL_CHECK(input.dim() >= 2, throw_runtime, "linalg.%s(input): needs at least 2 dimensions, got shape %s",
             op, to_string(input.sizes()).c_str());
    for (size_t i = 0; i < 2; ++i) pair[i] = wrap_dim(op, dim[i], input.dim());
    RL_CHECK(pair[0] != pair[1], throw_runtime, "linalg.%s(dim): the dimensions must differ, got %s", op,
             to_string(dim).c_str());
}

// Returns the input of a norm in the dtype in which the norm is computed.
Tensor converted(const char* op, const Tensor& input, std::optional<DType> dtype) {
    check_floating(op, input);
    if (dtype) checks::norm_dtype((std::string("linalg.") + op).c_str(), input, *dtype);
    return dtype && *dtype != input.dtype() ? ops::_to_copy(input, *dtype) : input;
}

// Returns the singular values of the matrices in dimensions `pair`, along a new last dimension. With `keepdim`, the two
// dimensions stay with size 1.
Tensor singular_values(const Tensor& input, const int64_t* pair, bool keepdim) {
    const Tensor moved = ops::movedim(input, IntList(pair, 2), kInts<-2, -1>);
    Tensor values = ops::linalg_svdvals(moved);
    if (!keepdim) return values;
    for (const int64_t d : {std::min(pair[0], pair[1]), std::max(pair[0], pair[1])})
        values = ops::unsqueeze(values, d);
    return values;
}

// Returns the maximum if the order is positive, otherwise the minimum. The maximum of no elements is 0, as norms are not
// negative.
Tensor extreme(const Tensor& values, double order, int64_t dim, bool keepdim) {
    const IntList along(&dim, 1);
    if (order < 0) return ops::amin(values, along, keepdim);
    return values.size(dim) ? ops::amax(values, along, keepdim)
                            : ops::sum(values, along, keepdim, std::nullopt);
}

}  // namespace

// --- norms ---

Tensor linalg_vector_norm(const Tensor& input, Scalar ord, std::optional<IntList> dim, bool keepdim,
                          std::optional<DType> dtype) {
    return ops::norm(converted("vector_norm", input, dtype), ord, dim, keepdim, std::nullopt);
}

Tensor linalg_matrix_norm(const Tensor& given, Scalar ord, IntList dim, bool keepdim,
                          std::optional<DType> dtype) {
    const Tensor input = converted("matrix_norm", given, dtype);
    int64_t pair[2];
    check_pair("matrix_norm", input, dim, pair);
    const double order = ord.to<double>();
    if (std::abs(order) == 2) {
        const Tensor values = singular_values(input, pair, keepdim);
        return extreme(values, order, -1, false);
    }
    RL_CHECK(std::abs(order) == 1 || std::isinf(order), throw_runtime,
             "linalg.matrix_norm(ord): must be 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc', got %g", order);
    if (std::isinf(order)) std::swap(pair[0], pair[1]);
    // Sums over the first dimension, then takes the maximum or minimum over the second.
    const Tensor sums = ops::sum(ops::abs(input), IntList(&pair[0], 1), keepdim, std::nullopt);
    const int64_t along = pair[1] - (!keepdim && pair[0] < pair[1] ? 1 : 0);
    return extreme(sums, order, along, keepdim);
}

Tensor linalg_matrix_norm_name(const Tensor& given, std::string_view ord, IntList dim, bool keepdim,
                               std::optional<DType> dtype) {
    RL_CHECK(ord == "fro" || ord == "nuc", throw_runtime,
             "linalg.matrix_norm(ord): must be a number, 'fro' or 'nuc', got '%.*s'",
             static_cast<int>(ord.size()), ord.data());
    const Tensor input = converted("matrix_norm", given, dtype);
    int64_t pair[2];
    check_pair("matrix_norm", input, dim, pair);
    if (ord == "nuc") return ops::sum(singular_values(input, pair, keepdim), kInts<-1>, false, std::nullopt);
    return linalg_vector_norm(input, Scalar(2), IntList(pair), keepdim, std::nullopt);
}

Tensor linalg_norm(const Tensor& input, std::optional<Scalar> ord, std::optional<IntList> dim, bool keepdim,
                   std::optional<DType> dtype) {
    RL_CHECK(!dim || dim->size() == 1 || dim->size() == 2, throw_runtime,
             "linalg.norm(dim): must contain one or two dimensions, got %s", to_string(*dim).c_str());
    if (!ord) return linalg_vector_norm(input, Scalar(2), dim, keepdim, dtype);
    const int64_t n = dim ? static_cast<int64_t>(dim->size()) : input.dim();
    RL_CHECK(n == 1 || n == 2, throw_runtime, "linalg.norm(ord): needs one or two dimensions, got %s %s",
             dim ? "dim" : "a tensor of shape", to_string(dim ? *dim : input.sizes()).c_str());
    if (n == 1) return linalg_vector_norm(input, *ord, dim, keepdim, dtype);
    return linalg_matrix_norm(input, *ord, dim ? *dim : kInts<-2, -1>, keepdim, dtype);
}

Tensor linalg_norm_name(const Tensor& input, std::string_view ord, std::optional<IntList> dim, bool keepdim,
                        std::optional<DType> dtype) {
    RL_CHECK(dim || input.dim() == 2, throw_runtime,
             "linalg.norm(ord): '%.*s' is a norm of matrices, got shape %s\nhint: pass two dimensions as dim",
             static_cast<int>(ord.size()), ord.data(), to_string(input.sizes()).c_str());
    return linalg_matrix_norm_name(input, ord, dim ? *dim : kInts<-2, -1>, keepdim, dtype);
}

// --- products ---

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
    const Tensor products = ops::mul(ops::conj(x), y);
    const int64_t d = wrap_dim("linalg.vecdot", dim, products.dim());
    return ops::sum(products, IntList(&d, 1), false, products.dtype());
}

namespace {

// best[i][j] is the position at which the product of matrices i to j is split.
Tensor multiply(const std::vector<Tensor>& matrices, const std::vector<std::vector<size_t>>& best, size_t i,
                size_t j) {
    if (i == j) return matrices[i];
    const size_t k = best[i][j];
    return ops::mm(multiply(matrices, best, i, k), multiply(matrices, best, k + 1, j));
}

Tensor in_best_order(const char* op, const std::vector<Tensor>& matrices) {
    const size_t n = matrices.size();
    for (size_t i = 0; i < n; ++i) {
        RL_CHECK(matrices[i].dim() == 2, throw_runtime, "%s: needs matrices, got shape %s at position %zu",
                 op, to_string(matrices[i].sizes()).c_str(), i);
        RL_CHECK(i == 0 || matrices[i - 1].size(1) == matrices[i].size(0), throw_runtime,
                 "%s: shapes %s and %s at positions %zu and %zu cannot be multiplied", op,
                 to_string(matrices[i - 1].sizes()).c_str(), to_string(matrices[i].sizes()).c_str(), i - 1,
                 i);
    }
    auto size = [&](size_t i) {
        return static_cast<double>(i == 0 ? matrices[0].size(0) : matrices[i - 1].size(1));
    };
    std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
    std::vector<std::vector<size_t>> best(n, std::vector<size_t>(n, 0));
    for (size_t length = 2; length <= n; ++length) {
        for (size_t i = 0, j = length - 1; j < n; ++i, ++j) {
            for (size_t k = i; k < j; ++k) {
                const double c = cost[i][k] + cost[k + 1][j] + size(i) * size(k + 1) * size(j + 1);
                if (k > i && c >= cost[i][j]) continue;
                cost[i][j] = c;
                best[i][j] = k;
            }
        }
    }
    return multiply(matrices, best, 0, n - 1);
}

}  // namespace

Tensor linalg_multi_dot(TensorList tensors) {
    RL_CHECK(tensors.size() >= 2, throw_runtime,
             "linalg.multi_dot(tensors): needs at least two tensors, got %zu", tensors.size());
    std::vector<Tensor> matrices(tensors.begin(), tensors.end());
    const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
    if (row) matrices.front() = ops::unsqueeze(matrices.front(), 0);
    if (column) matrices.back() = ops::unsqueeze(matrices.back(), 1);
    Tensor made = in_best_order("linalg.multi_dot(tensors)", matrices);
    if (column) made = ops::squeeze(made, kInts<-1>);
    return row ? ops::squeeze(made, kInts<0>) : made;
}

Tensor chain_matmul(TensorList matrices) {
    RL_CHECK(!matrices.empty(), throw_runtime, "chain_matmul(matrices): needs at least one matrix, got none");
    Tensor made = in_best_order("chain_matmul(matrices)", {matrices.begin(), matrices.end()});
    return matrices.size() == 1 ? ops::clone(made, std::nullopt) : made;
}

// --- functions of matrices ---

Tensor matrix_power(const Tensor& input, int64_t n) {
    check_square("matrix_power", input);
    if (n < 0) {
        RL_CHECK(n > INT64_MIN, throw_runtime, "linalg.matrix_power(n): must be greater than -2^63, got %lld",
                 (long long)n);
        return matrix_power(ops::linalg_inv(input), -n);
    }
    if (n == 0)
        return fresh(ops::copy_(ops::zeros_like(input, std::nullopt, std::nullopt, false, "contiguous"),
                                identity_like(input)));
    if (n == 1) return ops::clone(input, "contiguous");
    Tensor square = input, power;
    for (;;) {
        if (n & 1) power = power.defined() ? ops::matmul(power, square) : square;
        if ((n >>= 1) == 0) return power;
        square = ops::matmul(square, square);
    }
}

Tensor matrix_exp(const Tensor& input) {
    check_floating("matrix_exp", input);
    check_square("matrix_exp", input);
    if (input.numel() == 0) return ops::clone(input, "contiguous");
    if (input.size(-1) == 1) return ops::exp(input);
    if (is_floating(input.dtype()) && itemsize(input.dtype()) < 4)
        return ops::_to_copy(matrix_exp(ops::_to_copy(input, DType::Float32)), input.dtype());

    // Each matrix has its own number of squarings s. Matrices with elements that are not finite are not scaled.
    Tensor norms =
        ops::_to_copy(linalg_matrix_norm(ops::detach(input), Scalar(1), kInts<-2, -1>, false, std::nullopt),
                      DType::Float64);
    // A meta tensor has no values, so nothing is squared.
    const bool meta = input.device().type == DeviceType::Meta;
    if (!meta) require_values("linalg.matrix_exp", norms);
    const Device host = meta ? input.device() : Device();
    norms = ops::contiguous(ops::to(norms, host));
    Tensor squarings = make_tensor(norms.sizes(), DType::Int64, host),
           scales = make_tensor(norms.sizes(), DType::Float64, host);
    // The series of sixteen powers reaches the dtype's precision for norms up to 2^reach. Scaling to smaller norms would
    // lose digits, because it requires more squarings, and each squaring doubles the rounding errors.
    const int reach = real_dtype(input.dtype()) == DType::Float64 ? -1 : 1;
    int64_t most = 0;
    for (int64_t i = 0; !meta && i < norms.numel(); ++i) {
        const double norm = norms.data<double>()[i];
        const int64_t s =
            std::isfinite(norm) && norm > std::ldexp(1.0, reach) ? std::ilogb(norm) + 1 - reach : 0;
        squarings.data<int64_t>()[i] = s;
        scales.data<double>()[i] = std::ldexp(1.0, static_cast<int>(-s));
        most = std::max(most, s);
    }
    auto each = [](const Tensor& t) { return ops::unsqueeze(ops::unsqueeze(t, -1), -1); };
    squarings = ops::to(squarings, input.device());
    const Tensor a = ops::mul(input, each(ops::to(ops::_to_copy(scales, input.dtype()), input.device())));
    const Tensor one = identity_like(a), second = ops::matmul(a, a);
    const Tensor third = ops::matmul(second, a), fourth = ops::matmul(second, second);
    // Sums a^k / k! in blocks of four powers, from the highest: result = result a^4 + block.
    double factorials[17] = {1};
    for (int k = 1; k <= 16; ++k) factorials[k] = factorials[k - 1] * k;
    Tensor result = ops::mul(fourth, Scalar(1 / factorials[16]));
    for (int block = 3; block >= 0; --block) {
        const double* f = factorials + 4 * block;
        Tensor sum = ops::add(ops::mul(one, Scalar(1 / f[0])), ops::mul(a, Scalar(1 / f[1])));
        sum = ops::add(sum, ops::add(ops::mul(second, Scalar(1 / f[2])), ops::mul(third, Scalar(1 / f[3]))));
        result = ops::add(block == 3 ? result : ops::matmul(result, fourth), sum);
    }
    for (int64_t k = 0; k < most; ++k)
        result = ops::where(ops::gt(each(squarings), Scalar(k)), ops::matmul(result, result), result);
    return result;
}

// --- structure ---

Tensor linalg_diagonal(const Tensor& A, int64_t offset, int64_t dim1, int64_t dim2) {
    return ops::diagonal(A, offset, dim1, dim2);
}

namespace {

// Returns x^0 to x^(count - 1) along a new last dimension. Each step doubles the number of powers.
Tensor powers_of(const Tensor& x, int64_t count) {
    Tensor step = is_differentiable(x.dtype()) ? x : ops::_to_copy(x, DType::Int64);
    std::vector<int64_t> sizes = step.shape();
    sizes.push_back(count);
    make_tensor(sizes, step.dtype(), step.device());  // raises early if the result does not fit into memory
    sizes.back() = 1;
    Tensor powers = ops::new_ones(step, sizes);
    step = ops::unsqueeze(step, -1);
    for (int64_t have = 1; have < count;) {
        const int64_t more = std::min(have, count - have);
        const Tensor parts[] = {powers, ops::mul(ops::narrow(powers, -1, 0, more), step)};
        powers = ops::cat(parts, -1);
        have += more;
        if (have < count) step = ops::mul(step, step);
    }
    return powers;
}

}  // namespace

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> N) {
    const Tensor numbers = x.dim() ? x : ops::unsqueeze(x, 0);
    const int64_t count = N.value_or(numbers.size(-1));
    RL_CHECK(count > 1, throw_runtime, "linalg.vander(N): must be greater than 1, got %lld",
             (long long)count);
    return powers_of(numbers, count);
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
    RL_CHECK(x.dim() == 1, throw_runtime, "vander(x): needs a vector, got shape %s",
             to_string(x.sizes()).c_str());
    const int64_t count = N.value_or(x.size(0));
    RL_CHECK(count >= 0, throw_runtime, "vander(N): must not be negative, got %lld", (long long)count);
    const int64_t none[] = {x.size(0), 0};
    if (count == 0) return ops::new_empty(x, none, is_differentiable(x.dtype()) ? x.dtype() : DType::Int64);
    Tensor made = powers_of(x, count);
    return increasing ? made : ops::flip(made, kInts<-1>);
}

}  // namespace rushlight::composites
