#include "cpu/scatter.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "cpu/contiguous.h"
#include "cpu/positions.h"
#include "cpu/scatter_kernels.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Minimum number of elements per thread.
constexpr int64_t kWork = 1 << 14;

// --- one index for every element, along a dimension ---

// The indexed dimension of a tensor. A tensor without dimensions is treated as one dimension of size 1.
struct IndexedDim {
    int dim;
    int64_t size, stride;

    IndexedDim(const View& t, int64_t d) : dim(static_cast<int>(d < 0 ? d + std::max(t.ndim, 1) : d)) {
        size = t.ndim ? t.sizes[dim] : 1;
        stride = t.ndim ? t.strides[dim] : 0;
    }
};

// Returns `v` without the repetitions along expanded dimensions, so that each index is checked only once.
View without_repeats(KernelContext& ctx, const View& v) {
    if (v.contiguous) return v;
    View once = v;
    auto* sizes = scratch<int64_t>(ctx, v.ndim);
    once.sizes = sizes;
    once.numel = 1;
    for (int d = 0; d < v.ndim; ++d) once.numel *= sizes[d] = v.strides[d] == 0 ? 1 : v.sizes[d];
    return leading(once, once);
}

using Raise = void (*)(const char* fmt, ...);

[[noreturn, gnu::cold]] void fail_index(const char* op, Raise raise, const int64_t* index, int64_t n, int dim,
                                        int64_t size) {
    const int64_t* bad = std::find_if(index, index + n, [&](int64_t i) { return i < 0 || i >= size; });
    raise("%s(index): index %lld is out of range for dimension %d of size %lld", op,
          static_cast<long long>(*bad), dim, static_cast<long long>(size));
    __builtin_unreachable();
}

// Calls `raise` if an index is out of range.
void check_index(KernelContext& ctx, const char* op, Raise raise, const View& t, const View& index,
                 int64_t dim) {
    if (index.numel == 0) return;
    const IndexedDim along(t, dim);
    const View dense = contiguous_in(ctx, without_repeats(ctx, index), DType::Int64);
    const auto* values = dense.as<int64_t>();
    std::atomic<bool> good = true;
    parallel_for(0, dense.numel, 1 << 16, [&](int64_t begin, int64_t end) {
        if (!position_kernels().within(values + begin, end - begin, along.size)) good = false;
    });
    if (!good) fail_index(op, raise, values, dense.numel, along.dim, along.size);
}

// The rows of an index, which run along its last dimension. Two rows of the same group may select the same element,
// but two rows of different groups cannot.
struct Rows : IndexRows {
    int64_t group = 1;

    // `given` must not share memory with a tensor that is written: see apart_from.
    Rows(KernelContext& ctx, const View& t, int64_t d, const View& given) {
        const IndexedDim along(t, d);
        size = along.size;
        stride = along.stride;
        const int last = given.ndim - 1;
        for (int k = 0; k <= last; ++k) {
            const int64_t length = given.sizes[k], by = k == along.dim || t.ndim == 0 ? 0 : t.strides[k];
            if (k == last) {
                width = length;
                step = by;
            } else {
                rows.push(length, by);
                if (k >= along.dim) group *= length;
            }
        }
        index = contiguous_in(ctx, given, DType::Int64).as<int64_t>();
    }

    // Calls body(range) in parallel for parts that write to different elements.
    template <class Body>
    void each_apart(Body body) const {
        if (rows.count * width <= kWork) return body(RowRange{0, rows.count, 0, width});
        if (rows.count > group || step == 0)
            parallel_for(
                0, rows.count / group, kWork / (group * width + 1) + 1,
                [&](int64_t begin, int64_t end) { body(RowRange{begin * group, end * group, 0, width}); });
        else
            parallel_for(0, width, kWork / (rows.count + 1) + 1,
                         [&](int64_t begin, int64_t end) { body(RowRange{0, rows.count, begin, end}); });
    }
    // Calls body(range) in parallel for arbitrary parts.
    template <class Body>
    void each_part(Body body) const {
        if (rows.count * width <= kWork) return body(RowRange{0, rows.count, 0, width});
        if (rows.count >= width || rows.count >= 64)
            parallel_for(0, rows.count, kWork / (width + 1) + 1,
                         [&](int64_t begin, int64_t end) { body(RowRange{begin, end, 0, width}); });
        else
            parallel_for(0, width, kWork / (rows.count + 1) + 1,
                         [&](int64_t begin, int64_t end) { body(RowRange{0, rows.count, begin, end}); });
    }
};

// Returns a contiguous view of an operand. It is a copy if the operand shares memory with the written tensor.
View apart_and_dense(KernelContext& ctx, const View& v, const View& written) {
    return contiguous_in(ctx, apart_from(ctx, v, written));
}

// --- by index into the flattened tensor ---

// Converts indices into a flattened tensor to offsets in memory.
class Numbered {
  public:
    static constexpr int64_t kBlock = 4096;

    explicit Numbered(const View& t) : count_(t.numel), dense_(t.contiguous) {
        for (int d = 0; d < t.ndim; ++d) {
            elements_.push(t.sizes[d], t.strides[d]);
            if (t.numel > 0) span_ += (t.sizes[d] - 1) * t.strides[d];
        }
    }
    // Writes the offsets of `n` indices (at most kBlock) to `memory` and describes them in `r`. Returns false if an
    // index is out of range.
    bool rows(const int64_t* number, int64_t n, int64_t* memory, IndexRows& r) const {
        if (!position_kernels().from_the_front(memory, number, n, count_)) return false;
        for (int64_t i = 0; !dense_ && i < n; ++i) memory[i] = elements_.offset(memory[i]);
        r.index = memory;
        r.width = n;
        r.size = span_;
        r.stride = 1;
        return true;
    }

  private:
    int64_t count_, span_ = 1;
    bool dense_;
    Odometer elements_;
};

[[noreturn, gnu::cold]] void fail_number(const char* op, const int64_t* number, int64_t count, int64_t n) {
    const int64_t* bad = std::find_if(number, number + count, [&](int64_t i) { return i < -n || i >= n; });
    throw_index("%s(index): index %lld is out of range for a tensor of %lld elements", op,
                static_cast<long long>(*bad), static_cast<long long>(n));
}

// --- reducing ---

// Whether `input` is row-major, and `index` is the same for all elements of each slice.
bool is_of_slices(const View& input, const View& index, int dim) {
    bool slices = index.ndim > 1 && input.contiguous;
    for (int k = 0; slices && k < index.ndim; ++k)
        slices = k == dim || (index.strides[k] == 0 && index.sizes[k] == input.sizes[k]);
    return slices;
}

}  // namespace

void gather(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim) {
    if (index.numel == 0) return;
    const Rows rows(ctx, input, dim, index);
    const size_t size = itemsize(input.dtype);
    std::atomic<bool> good = true;
    rows.each_part([&](RowRange range) {
        if (!position_kernels().gather(rows, range, out.data, input.data, size)) good = false;
    });
    if (!good) check_index(ctx, "gather", throw_runtime, input, index, dim);
}

void scatter(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim) {
    if (index.numel == 0) return;
    const Rows rows(ctx, input, dim, apart_from(ctx, index, input));
    const View values = apart_and_dense(ctx, leading(src, index), input);
    rows.each_apart([&](RowRange range) {
        position_kernels().scatter(rows, range, input.data, values.data, 1, itemsize(input.dtype));
    });
}
void scatter_value(KernelContext& ctx, const View& input, const View& index, int64_t dim,
                   const Param& value) {
    if (index.numel == 0) return;
    const Rows rows(ctx, input, dim, apart_from(ctx, index, input));
    const void* element = as_element(ctx, value, input.dtype);
    rows.each_apart([&](RowRange range) {
        position_kernels().scatter(rows, range, input.data, element, 0, itemsize(input.dtype));
    });
}
void scatter_add(KernelContext& ctx, const View& input, const View& index, const View& src, int64_t dim) {
    if (index.numel == 0) return;
    const WidenedSums sums(ctx, input);
    const View& wide = sums.view();
    const Rows rows(ctx, wide, dim, apart_from(ctx, index, input));
    const View values = widened(ctx, apart_and_dense(ctx, leading(src, index), input));
    const auto add = position_kernels().add[static_cast<int>(wide.dtype)];
    rows.each_apart([&](RowRange range) { add(rows, range, wide.data, values.data); });
    sums.finish(ctx);
}

void scatter_check(KernelContext& ctx, const View& input, const View& index, const View&, int64_t dim) {
    check_index(ctx, "scatter_", throw_runtime, input, index, dim);
}
void scatter_value_check(KernelContext& ctx, const View& input, const View& index, int64_t dim,
                         const Param&) {
    check_index(ctx, "scatter_", throw_runtime, input, index, dim);
}
void scatter_add_check(KernelContext& ctx, const View& input, const View& index, const View&, int64_t dim) {
    check_index(ctx, "scatter_add_", throw_runtime, input, index, dim);
}

void scatter_reduce(KernelContext& ctx, const View& written, const View& index, const View& src, int64_t dim,
                    std::string_view reduce, bool include_self, std::string_view) {
    if (index.numel == 0) return;
    const WidenedSums sums(ctx, written);
    const View& input = sums.view();
    const IndexedDim along(input, dim);
    ScatterPlan plan;
    plan.size = along.size;
    plan.stride = along.stride;
    for (int k = 0; k < index.ndim; ++k) {
        const int64_t length = index.sizes[k];
        if (k != along.dim) plan.others.push(length, input.ndim ? input.strides[k] : 0);
        (k < along.dim ? plan.outer : k == along.dim ? plan.n : plan.inner) *= length;
    }
    plan.slices = is_of_slices(input, index, along.dim);
    View positions = index;
    if (plan.slices) {  // all rows have the same indices
        positions =
            View{index.data, index.sizes + along.dim, index.strides + along.dim, plan.n, 1, index.dtype, 0};
        positions = leading(positions, positions);
    }
    plan.index = contiguous_in(ctx, apart_from(ctx, positions, written), DType::Int64).as<int64_t>();
    const View values = widened(ctx, apart_and_dense(ctx, src, written));
    const ScatterReduction how = scatter_reduction_of(reduce);
    const auto body = scatter_kernels().reduce[static_cast<int>(how)][static_cast<int>(input.dtype)];
    const int64_t blocks = plan.outer * plan.across(),
                  grain = kWork / (plan.n * std::min(plan.inner, plan.width()) + 1) + 1;
    const auto run = [&](int64_t* counts, int64_t begin, int64_t end) {
        body(plan, input.data, values.data, include_self, counts, begin, end);
    };
    if (how == ScatterReduction::Mean && !plan.slices) {  // every thread has its own counts
        const int64_t each = plan.size * std::min(plan.inner, plan.width()),
                      chunks = std::clamp<int64_t>(blocks / grain, 1, num_threads());
        int64_t* counts = scratch<int64_t>(ctx, chunks * each);
        parallel_chunks(chunks, [&](int64_t c) {
            run(counts + c * each, blocks * c / chunks, blocks * (c + 1) / chunks);
        });
        return sums.finish(ctx);
    }
    int64_t* counts = nullptr;
    if (how == ScatterReduction::Mean) {
        counts = scratch<int64_t>(ctx, plan.size);
        std::fill_n(counts, plan.size, include_self ? 1 : 0);
        for (int64_t i = 0; i < plan.n; ++i) ++counts[plan.index[i]];
    }
    parallel_for(0, blocks, grain, [&](int64_t begin, int64_t end) { run(counts, begin, end); });
    sums.finish(ctx);
}
void scatter_reduce_check(KernelContext& ctx, const View& input, const View& index, const View&, int64_t dim,
                          std::string_view, bool, std::string_view caller) {
    // Like PyTorch, raises IndexError for the index of a slice (index_*), and RuntimeError for the index of an
    // element (scatter_*).
    check_index(ctx, std::string(caller).c_str(), caller.starts_with("index") ? throw_index : throw_runtime,
                input, index, dim);
}

void take(KernelContext& ctx, const View& out, const View& input, const View& index) {
    const auto* number = contiguous_in(ctx, index).as<int64_t>();
    const Numbered elements(input);
    const size_t size = itemsize(input.dtype);
    std::atomic<bool> good = true;
    parallel_for(0, index.numel, kWork, [&](int64_t begin, int64_t end) {
        int64_t positions[Numbered::kBlock];
        IndexRows rows;
        for (int64_t i = begin, n; i < end && good; i += n) {
            n = std::min(end - i, Numbered::kBlock);
            if (!elements.rows(number + i, n, positions, rows)) good = false;
            else
                position_kernels().gather(rows, {0, 1, 0, n}, out.as<char>() + static_cast<size_t>(i) * size,
                                          input.data, size);
        }
    });
    if (!good) fail_number("take", number, index.numel, input.numel);
}

void put(KernelContext& ctx, const View& written, const View& index, const View& source, bool accumulate) {
    const View numbers = apart_and_dense(ctx, index, written);
    if (accumulate && is_reduced(written.dtype)) {
        const WidenedSums sums(ctx, written);
        put(ctx, sums.view(), numbers, widened(ctx, apart_and_dense(ctx, source, written)), true);
        return sums.finish(ctx);
    }
    const View values = apart_and_dense(ctx, source, written);
    const Numbered elements(written);
    const size_t size = itemsize(written.dtype);
    const auto add = position_kernels().add[static_cast<int>(written.dtype)];
    int64_t positions[Numbered::kBlock];
    IndexRows rows;
    for (int64_t i = 0, n; i < index.numel; i += n) {
        n = std::min(index.numel - i, Numbered::kBlock);
        elements.rows(numbers.as<int64_t>() + i, n, positions, rows);
        const char* from = values.as<char>() + static_cast<size_t>(i) * size;
        if (accumulate) add(rows, {0, 1, 0, n}, written.data, from);
        else position_kernels().scatter(rows, {0, 1, 0, n}, written.data, from, 1, size);
    }
}
void put_check(KernelContext& ctx, const View& input, const View& index, const View&, bool) {
    if (index.numel == 0) return;
    const View dense = contiguous_in(ctx, without_repeats(ctx, index));
    const auto* number = dense.as<int64_t>();
    int64_t positions[Numbered::kBlock];
    for (int64_t i = 0, n; i < dense.numel; i += n) {
        n = std::min(dense.numel - i, Numbered::kBlock);
        if (!position_kernels().from_the_front(positions, number + i, n, input.numel))
            fail_number("put_", number, dense.numel, input.numel);
    }
}

}  // namespace rushlight::cpu
