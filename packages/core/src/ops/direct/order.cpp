// Sorting, triangles and reversal. Elements are read by lines along one dimension.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bodies/order.h"
#include "bodies/permutation.h"
#include "cpu/cast.h"
#include "cpu/places.h"
#include "cpu/pointwise_driver.h"
#include "ops/copying.h"
#include "ops/direct/ordering.h"
#include "rushlight/parallel.h"

namespace rushlight::direct {
namespace {

// The lines along `dim`, which the tensor has last: a row-major copy of n columns.
struct Lines {
    Tensor rows;
    int64_t count, n;

    Lines(const Tensor& input, int dim) {
        Tensor moved = input.dim() ? take_view(input, views::transpose(input, dim, -1)) : input;
        rows = row_major(moved);
        n = input.dim() ? input.sizes()[dim] : 1;
        count = n ? input.numel() / n : 0;
    }
};

// Puts `dim` back where it was.
Tensor back(const Tensor& rows, int dim) {
    if (rows.dim() == 0 || dim == rows.dim() - 1) return rows;
    Tensor moved = take_view(rows, views::transpose(rows, dim, -1));
    Tensor out = make_tensor(moved.sizes(), rows.dtype(), rows.device());
    copy_into(out, moved);
    return out;
}

// For each line the first k indices in order, and the values there.
template <class T>
void order_lines(const Lines& lines, int64_t k, bool descending, T* values, int64_t* indices) {
    const T* data = lines.rows.data<T>();
    const int64_t n = lines.n;
    parallel_for(0, lines.count, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)),
                 [&](int64_t begin, int64_t end) {
                     Ordering<T> ordering(n);
                     for (int64_t line = begin; line < end; ++line) {
                         const T* x = data + line * n;
                         ordering.first(x, n, k, descending, [&](int64_t i, int64_t index) {
                             indices[line * k + i] = index;
                             values[line * k + i] = x[index];
                         });
                     }
                 });
}

std::tuple<Tensor, Tensor> ordered(const char* op, const Tensor& input, int dim, int64_t k, bool descending) {
    host_only(op, input);
    std::vector<int64_t> sizes = input.shape();
    if (input.dim()) sizes[static_cast<size_t>(dim)] = k;
    if (input.device().type == DeviceType::Meta)
        return {make_tensor(sizes, input.dtype(), input.device()),
                make_tensor(sizes, DType::Int64, input.device())};
    Lines lines(input, dim);
    std::vector<int64_t> moved = sizes;
    if (input.dim()) std::swap(moved[static_cast<size_t>(dim)], moved.back());
    Tensor values = make_tensor(moved, input.dtype()), indices = make_tensor(moved, DType::Int64);
    if (values.numel() > 0)
        with_type(op, input.dtype(), [&](auto zero) {
            using T = decltype(zero);
            order_lines<T>(lines, k, descending, values.data<T>(), indices.data<int64_t>());
        });
    return {back(values, dim), back(indices, dim)};
}

// Zeroes columns [from(row), to(row)) of every matrix.
template <class Range>
Tensor triangle(const char* op, const Tensor& input, Range range) {
    host_only(op, input);
    RL_CHECK(input.dim() >= 2, throw_runtime, "%s(input): needs at least 2 dimensions, got shape %s", op,
             to_string(input.sizes()).c_str());
    Tensor out = make_tensor(input.sizes(), input.dtype(), input.device());
    if (out.numel() == 0 || out.device().type == DeviceType::Meta) return out;
    copy_into(out, input);
    const int64_t rows = out.size(-2), columns = out.size(-1), count = out.numel() / columns;
    const auto size = static_cast<int64_t>(itemsize(out.dtype()));
    char* data = out.data<char>();
    for (int64_t i = 0; i < count; ++i) {
        auto [from, to] = range(i % rows, columns);
        if (from < to)
            std::memset(data + (i * columns + from) * size, 0, static_cast<size_t>((to - from) * size));
    }
    return out;
}

}  // namespace

std::tuple<Tensor, Tensor> sort(const Tensor& input, int64_t dim, bool descending, std::optional<bool>) {
    int d = wrap_dim("sort", dim, input.dim());
    return ordered("sort", input, d, input.dim() ? input.sizes()[d] : 1, descending);
}

std::tuple<Tensor, Tensor> topk(const Tensor& input, int64_t k, int64_t dim, bool largest, bool) {
    int d = wrap_dim("topk", dim, input.dim());
    int64_t n = input.dim() ? input.sizes()[d] : 1;
    RL_CHECK(k >= 0 && k <= n, throw_runtime,
             "topk(k): must be between 0 and the %lld elements of dimension %d, got %lld", (long long)n, d,
             (long long)k);
    // A 0-d tensor has one element in any case, and is its own result.
    return ordered("topk", input, d, input.dim() ? k : 1, largest);
}

Tensor tril(const Tensor& input, int64_t diagonal) {
    return triangle("tril", input, [=](int64_t row, int64_t columns) {
        return std::pair(diagonal >= columns ? columns : std::clamp<int64_t>(row + diagonal + 1, 0, columns),
                         columns);
    });
}
Tensor triu(const Tensor& input, int64_t diagonal) {
    return triangle("triu", input, [=](int64_t row, int64_t columns) {
        return std::pair(int64_t{0},
                         diagonal >= columns ? columns : std::clamp<int64_t>(row + diagonal, 0, columns));
    });
}

Tensor flip(const Tensor& input, IntList dims) {
    host_only("flip", input);
    uint64_t turned = 0;
    for (int64_t dim : dims) {
        int d = wrap_dim("flip", dim, input.dim());
        RL_CHECK(!(turned >> d & 1), throw_runtime, "flip(dims): dimension %d stands twice in %s", d,
                 to_string(dims).c_str());
        turned |= uint64_t{1} << d;
    }
    Tensor out = make_tensor(input.sizes(), input.dtype(), input.device());
    if (out.numel() == 0 || out.device().type == DeviceType::Meta) return out;
    // Read from the last element with negative strides.
    cpu::PointwisePlan plan;
    plan.ndim = static_cast<int>(input.dim());
    plan.num_operands = 2;
    plan.loop = cpu::cast_loop(input.dtype(), input.dtype());
    plan.params = nullptr;
    plan.data[0] = out.data<char>();
    plan.data[1] = input.data<char>();
    plan.dtype[0] = plan.dtype[1] = plan.loop_dtype[0] = plan.loop_dtype[1] = input.dtype();
    const auto size = static_cast<int64_t>(itemsize(input.dtype()));
    for (int d = 0; d < plan.ndim; ++d) {
        plan.sizes[d] = input.sizes()[d];
        plan.strides[0][d] = out.strides()[d] * size;
        plan.strides[1][d] = input.strides()[d] * size;
        if (turned >> d & 1) {
            plan.data[1] += (plan.sizes[d] - 1) * plan.strides[1][d];
            plan.strides[1][d] = -plan.strides[1][d];
        }
    }
    cpu::coalesce(plan);
    const int last = plan.ndim - 1;
    if (plan.strides[0][last] == size && plan.strides[1][last] == -size)
        plan.loop = cpu::place_kernels().copy_backwards(itemsize(input.dtype()));
    cpu::run(plan);
    return out;
}

Tensor _repeat_index(const Tensor& repeats, int64_t size) {
    host_only("repeat_interleave", repeats);
    RL_CHECK(is_integral(repeats.dtype()) && repeats.dim() <= 1 &&
                 (repeats.numel() == 1 || repeats.numel() == size),
             throw_runtime, "repeat_interleave(repeats): needs 1 or %lld integers, got %s of shape %s",
             (long long)size, name(repeats.dtype()), to_string(repeats.sizes()).c_str());
    Tensor counts = make_tensor(repeats.sizes(), DType::Int64);
    copy_into(counts, repeats);
    const int64_t* count = counts.data<int64_t>();
    const int64_t step = counts.numel() == 1 ? 0 : 1;
    int64_t total = 0;
    bool fits = step == 1 || !__builtin_mul_overflow(count[0], std::max<int64_t>(size, 0), &total);
    for (int64_t i = 0; i < counts.numel(); ++i) {
        RL_CHECK(count[i] >= 0, throw_runtime, "repeat_interleave(repeats): must not be negative, found %lld",
                 (long long)count[i]);
        if (step == 1) fits = fits && !__builtin_add_overflow(total, count[i], &total);
    }
    RL_CHECK(fits, throw_runtime, "repeat_interleave(repeats): the sum overflows");
    Tensor index = make_tensor(IntList(&total, 1), DType::Int64);
    int64_t* out = index.data<int64_t>();
    for (int64_t i = 0; total > 0 && i < size; ++i) out = std::fill_n(out, count[i * step], i);
    return index;
}

}  // namespace rushlight::direct
