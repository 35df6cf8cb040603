// Triangular parts of matrices.
#include <algorithm>

#include "bodies/diagonals.h"
#include "ops/numbers.h"
#include "rushlight/backend.h"

namespace rushlight::rules {
namespace {

Outputs triangle(const char* op, const Tensor& input) {
    RL_CHECK(input.dim() >= 2, throw_runtime, "%s(input): needs at least 2 dimensions, got shape %s", op,
             to_string(input.sizes()).c_str());
    Outputs outs;
    outs.like(input);
    return outs;
}

// Returns a + b, clamped to [0, limit].
int64_t clamped_sum(int64_t a, int64_t b, int64_t limit) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? limit : 0;
    return std::clamp<int64_t>(sum, 0, limit);
}

// Returns the number of elements before the diagonal that begins at `offset`, summed over all rows.
__int128 before_diagonal(const char* op, int64_t rows, int64_t columns, int64_t offset) {
    RL_CHECK(rows >= 0 && columns >= 0, throw_runtime,
             "%s(row, col): must not be negative, got %lld and %lld", op, (long long)rows,
             (long long)columns);
    // The first rows have no element before the diagonal. Each of the following rows has one more such element than the row
    // above it. In the last rows, all elements are before the diagonal.
    const int64_t none = offset < 0 ? std::min(rows, -std::max(offset, -INT64_MAX)) : 0;
    const int64_t ramp =
        std::max(none, clamped_sum(columns, offset == INT64_MIN ? INT64_MAX : -offset, rows));
    const __int128 first = static_cast<__int128>(none) + offset,
                   last = static_cast<__int128>(ramp) - 1 + offset;
    return (first + last) * (ramp - none) / 2 + static_cast<__int128>(rows - ramp) * columns;
}

Outputs triangle_indices(const char* op, int64_t row, int64_t col, __int128 count, std::optional<DType> dtype,
                         std::optional<Device> device, bool requires_grad) {
    const DType result = dtype.value_or(DType::Int64);
    RL_CHECK(is_integral(result), throw_not_implemented, "%s(dtype): must be an integer dtype, got %s", op,
             name(result));
    RL_CHECK(fits_integer(Scalar(std::max({row - 1, col - 1, int64_t{0}})), result), throw_runtime,
             "%s(dtype): %s cannot represent the indices of %lld rows and %lld columns", op, name(result),
             (long long)row, (long long)col);
    RL_CHECK(!requires_grad, throw_runtime,
             "%s(requires_grad): must be False, because integers have no gradient", op);
    RL_CHECK(count <= INT64_MAX / 2, throw_runtime,
             "%s(row, col): the result would have too many elements, got %lld rows and %lld columns", op,
             (long long)row, (long long)col);
    const int64_t shape[] = {2, static_cast<int64_t>(count)};
    Outputs outs;
    outs.add(shape, result, resolve(device.value_or(Device{})));
    return outs;
}

}  // namespace

Outputs tril(const Tensor& input, int64_t) { return triangle("tril", input); }
Outputs triu(const Tensor& input, int64_t) { return triangle("triu", input); }

Outputs tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                     std::optional<Device> device, bool requires_grad) {
    const int64_t behind = offset == INT64_MAX ? offset : offset + 1;
    return triangle_indices("tril_indices", row, col, before_diagonal("tril_indices", row, col, behind),
                            dtype, device, requires_grad);
}
Outputs triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                     std::optional<Device> device, bool requires_grad) {
    const __int128 all = static_cast<__int128>(row) * col;
    return triangle_indices("triu_indices", row, col, all - before_diagonal("triu_indices", row, col, offset),
                            dtype, device, requires_grad);
}

}  // namespace rushlight::rules
