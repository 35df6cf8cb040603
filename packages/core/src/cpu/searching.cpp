#include "cpu/searching.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpu/contiguous.h"
#include "cpu/order_kernels.h"
#include "cpu/searching_kernels.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kWork = 1 << 12;  // minimum number of searches per thread

// Groups of equal elements or rows. The kernel that counts the groups stores them for the kernel that writes them.
struct Distinct {
    View dense;  // the elements, sorted unless consecutive; or the rows as they are given
    int64_t *order, *starts, *group;  // `order` and `group` may be null
    int64_t n, size;

    int64_t number(int64_t i) const { return order ? order[i] : i; }
    void write(const View& inverse, const View& counts) const {
        for (int64_t i = 0; group && i < n; ++i) inverse.as<int64_t>()[number(i)] = group[i];
        for (int64_t g = 0; g < counts.numel; ++g)
            counts.as<int64_t>()[g] = (g + 1 < size ? starts[g + 1] : n) - starts[g];
    }
};

Distinct& distinct(KernelContext& ctx, int64_t n, bool return_inverse) {
    Distinct& d = *scratch<Distinct>(ctx, 1);
    ctx.kept = &d;
    d.n = n;
    d.order = nullptr;
    d.starts = scratch<int64_t>(ctx, n + 1);
    d.group = return_inverse ? scratch<int64_t>(ctx, n) : nullptr;
    return d;
}
const Distinct& kept(const KernelContext& ctx) { return *static_cast<const Distinct*>(ctx.kept); }

}  // namespace

void searchsorted(KernelContext& ctx, const View& out, const View& boundaries, const View& input,
                  const View& sorter, bool, bool right) {
    const View sorted = contiguous_in(ctx, boundaries), values = contiguous_in(ctx, input),
               order = contiguous_in(ctx, sorter);
    const int64_t n = boundaries.size(-1);
    const auto* at = sorter.defined() ? order.as<int64_t>() : nullptr;
    for (int64_t i = 0; at && i < order.numel; ++i)
        RL_CHECK(at[i] >= 0 && at[i] < n, throw_runtime,
                 "searchsorted(sorter): index %lld is out of range for %lld boundaries",
                 static_cast<long long>(at[i]), static_cast<long long>(n));
    if (out.numel == 0) return;
    const auto position = searching_kernels().position[static_cast<int>(input.dtype)];
    const View positions = out.dtype == DType::Int64 ? out : scratch_like(ctx, out, DType::Int64);
    const auto size = static_cast<int64_t>(itemsize(input.dtype));
    // The values of a row share their boundaries.
    const int64_t width = boundaries.ndim == 1 ? values.numel : values.size(-1), rows = values.numel / width;
    const auto search = [&](int64_t row, int64_t begin, int64_t end) {
        position(positions.as<int64_t>() + row * width + begin,
                 values.as<char>() + (row * width + begin) * size, end - begin,
                 sorted.as<char>() + row * n * size, at ? at + row * n : nullptr, n, right);
    };
    if (rows == 1) parallel_for(0, width, kWork, [&](int64_t begin, int64_t end) { search(0, begin, end); });
    else
        parallel_for(0, rows, kWork / width + 1, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) search(row, 0, width);
        });
    if (positions.data != out.data) copy_to(out, positions);
}

void isin_sorted(KernelContext& ctx, const View& out, const View& input, const View& sorted, bool invert) {
    const View values = contiguous_in(ctx, input), known = contiguous_in(ctx, sorted);
    const auto size = static_cast<int64_t>(itemsize(input.dtype));
    parallel_for(0, out.numel, kWork, [&](int64_t begin, int64_t end) {
        searching_kernels().is_in[static_cast<int>(input.dtype)](
            out.as<bool>() + begin, values.as<char>() + begin * size, end - begin, known.data, known.numel,
            invert);
    });
}

int64_t unique_elements_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                              bool) {
    const int64_t n = input.numel;
    const int dtype = static_cast<int>(input.dtype);
    Distinct& d = distinct(ctx, n, return_inverse);
    d.dense = contiguous_in(ctx, input);
    if (!consecutive && n > 0) {
        const View sorted = scratch_like(ctx, d.dense, input.dtype);
        d.order = scratch<int64_t>(ctx, n);
        order_kernels().loop[dtype](sorted.data, d.order, d.dense.data, 1, n, n, false,
                                    scratch<char>(ctx, order_kernels().memory(n, input.dtype)));
        d.dense = sorted;
    }
    return d.size = searching_kernels().group[dtype](d.starts, d.group, d.dense.data, n);
}
void unique_elements(KernelContext& ctx, const View& values, const View& inverse, const View& counts,
                     const View&, bool, bool, bool) {
    const Distinct& d = kept(ctx);
    const auto take = [&]<class Bits>(Bits) {
        for (int64_t g = 0; g < d.size; ++g) values.as<Bits>()[g] = d.dense.as<Bits>()[d.starts[g]];
    };
    switch (itemsize(values.dtype)) {
        case 1: take(uint8_t{}); break;
        case 2: take(uint16_t{}); break;
        case 4: take(uint32_t{}); break;
        default: take(uint64_t{});
    }
    d.write(inverse, counts);
}

int64_t unique_rows_count(KernelContext& ctx, const View& input, bool consecutive, bool return_inverse,
                          bool) {
    const int64_t n = input.sizes[0], width = n ? input.numel / n : 0;
    Distinct& d = distinct(ctx, n, return_inverse);
    d.dense = contiguous_in(ctx, input);
    const auto compare = searching_kernels().compare[static_cast<int>(input.dtype)];
    const auto row = [&, bytes = static_cast<size_t>(width) * itemsize(input.dtype)](int64_t i) {
        return d.dense.as<char>() + static_cast<size_t>(i) * bytes;
    };
    bool equal = true;
    if (!consecutive) {
        d.order = scratch<int64_t>(ctx, n);
        std::iota(d.order, d.order + n, int64_t{0});
        std::sort(d.order, d.order + n, [&](int64_t a, int64_t b) {
            const int way = compare(row(a), row(b), width, &equal);
            return way < 0 || (way == 0 && a < b);
        });
    }
    d.size = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (i > 0) compare(row(d.number(i - 1)), row(d.number(i)), width, &equal);
        if (i == 0 || !equal) d.starts[d.size++] = i;
        if (d.group) d.group[i] = d.size - 1;
    }
    return d.size;
}
void unique_rows(KernelContext& ctx, const View& values, const View& inverse, const View& counts, const View&,
                 bool, bool, bool) {
    const Distinct& d = kept(ctx);
    const size_t bytes = d.size ? static_cast<size_t>(values.numel / d.size) * itemsize(values.dtype) : 0;
    for (int64_t g = 0; bytes && g < d.size; ++g)
        std::memcpy(values.as<char>() + static_cast<size_t>(g) * bytes,
                    d.dense.as<char>() + static_cast<size_t>(d.number(d.starts[g])) * bytes, bytes);
    d.write(inverse, counts);
}

}  // namespace rushlight::cpu
