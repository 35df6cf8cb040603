#include "cpu/order.h"

#include <algorithm>

#include "cpu/cast.h"
#include "cpu/contiguous.h"
#include "cpu/order_kernels.h"
#include "cpu/ordered_rows.h"
#include "cpu/pointwise_driver.h"
#include "cpu/positions.h"
#include "cpu/split_shape.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

void order(KernelContext& ctx, const char* op, const View& values, const View& indices, const View& input,
           int64_t dim, bool descending) {
    const auto first = order_kernels().loop[static_cast<int>(input.dtype)];
    RL_CHECK(first, throw_not_implemented, "%s: not defined for dtype %s", op, name(input.dtype));
    if (values.numel == 0) return;
    const View rows = contiguous_in(ctx, with_last(ctx, input, dim)), to_values = with_last(ctx, values, dim),
               to_indices = with_last(ctx, indices, dim);
    // Results along a dimension other than the last are computed in scratch memory and copied to the outputs
    // afterwards.
    const bool last = to_values.contiguous;
    const View value = last ? to_values : scratch_like(ctx, to_values, values.dtype),
               index = last ? to_indices : scratch_like(ctx, to_indices, DType::Int64);
    const int64_t n = input.ndim ? rows.sizes[rows.ndim - 1] : 1, count = rows.numel / n,
                  k = values.numel / count, size = static_cast<int64_t>(itemsize(input.dtype));
    each_part_of_rows(ctx, order_kernels(), input.dtype, count, n,
                      [&](int64_t begin, int64_t end, void* memory) {
                          first(value.as<char>() + begin * k * size, index.as<int64_t>() + begin * k,
                                rows.as<char>() + begin * n * size, end - begin, n, k, descending, memory);
                      });
    if (last) return;
    copy_to(values, with_last(ctx, value, dim));
    copy_to(indices, with_last(ctx, index, dim));
}

}  // namespace

void sort(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t dim,
          bool descending, bool) {
    order(ctx, "sort", values, indices, input, dim, descending);
}
void topk(KernelContext& ctx, const View& values, const View& indices, const View& input, int64_t,
          int64_t dim, bool largest, bool) {
    order(ctx, "topk", values, indices, input, dim, largest);
}

// The number of bytes below which the cost of a run is mainly that of its loop.
static constexpr int64_t kShortRun = 128;

void flip(KernelContext& ctx, const View& out, const View& input, Ints dims) {
    if (out.numel == 0) return;
    // Flipped dimensions are read from their last element, with negative strides.
    const auto size = static_cast<int64_t>(itemsize(input.dtype));
    View from = input;
    auto* strides = scratch<int64_t>(ctx, input.ndim);
    std::copy_n(input.strides, input.ndim, strides);
    for (int64_t dim : dims) {
        if (input.ndim == 0) break;
        const auto d = dim < 0 ? dim + input.ndim : dim;
        from.data = from.as<char>() + (input.sizes[d] - 1) * strides[d] * size;
        strides[d] = -strides[d];
    }
    from.strides = strides;
    const View y = in_order_of(ctx, out, out), x = in_order_of(ctx, from, out);
    PointwisePlan plan;
    plan.ndim = input.ndim;
    plan.num_operands = 2;
    plan.loop = cast_loop(input.dtype, input.dtype);
    plan.params = nullptr;
    plan.data[0] = out.as<char>();
    plan.data[1] = from.as<char>();
    plan.dtype[0] = plan.dtype[1] = plan.loop_dtype[0] = plan.loop_dtype[1] = input.dtype;
    for (int d = 0; d < plan.ndim; ++d) {
        plan.sizes[d] = y.sizes[d];
        plan.strides[0][d] = y.strides[d] * size;
        plan.strides[1][d] = x.strides[d] * size;
    }
    coalesce(plan);
    const int last = plan.ndim - 1;
    const auto adjacent = [&](int d) {
        return d >= 0 && plan.strides[0][d] == size && plan.strides[1][d] == size;
    };
    // coalesce() may exchange the last two dimensions.
    const int run_dim = adjacent(last) ? last : adjacent(last - 1) ? last - 1 : -1;
    const int64_t bytes = run_dim < 0 ? 0 : plan.sizes[run_dim] * size;
    const Scalar run_bytes(bytes);
    if (plan.strides[0][last] == size && plan.strides[1][last] == -size) {
        plan.loop = position_kernels().copy_backwards(itemsize(input.dtype));
    } else if (last > 0 && run_dim >= 0 && bytes <= kShortRun) {
        // Short runs that keep their order are copied like elements.
        if (run_dim != last) {
            plan.sizes[run_dim] = plan.sizes[last];
            for (int i = 0; i < plan.num_operands; ++i) plan.strides[i][run_dim] = plan.strides[i][last];
        }
        plan.ndim = last;
        const bool element = bytes == 16 || bytes == 8 || bytes == 4 || bytes == 2;
        const bool backwards = plan.strides[0][last - 1] == bytes && plan.strides[1][last - 1] == -bytes;
        plan.loop = element && backwards ? position_kernels().copy_backwards(static_cast<size_t>(bytes))
                                         : position_kernels().copy_runs;
        plan.params = &run_bytes;
    }
    run(plan);
}

int64_t repeat_index_count(KernelContext& ctx, const View& repeats, int64_t size) {
    const auto* count = contiguous_in(ctx, repeats, DType::Int64).as<int64_t>();
    ctx.kept = const_cast<int64_t*>(count);
    int64_t total = 0;
    bool fits = repeats.numel != 1 || !__builtin_mul_overflow(count[0], size, &total);
    for (int64_t i = 0; i < repeats.numel; ++i) {
        RL_CHECK(count[i] >= 0, throw_runtime, "repeat_interleave(repeats): must not be negative, found %lld",
                 static_cast<long long>(count[i]));
        if (repeats.numel != 1) fits = fits && !__builtin_add_overflow(total, count[i], &total);
    }
    RL_CHECK(fits, throw_runtime,
             "repeat_interleave(repeats): the sum of the repeats overflows a 64-bit integer");
    return total;
}
void repeat_index(KernelContext& ctx, const View& out, const View& repeats, int64_t size) {
    const auto* count = static_cast<const int64_t*>(ctx.kept);
    const int64_t step = repeats.numel == 1 ? 0 : 1;
    auto* to = out.as<int64_t>();
    for (int64_t i = 0; out.numel > 0 && i < size; ++i) to = std::fill_n(to, count[i * step], i);
}

}  // namespace rushlight::cpu
