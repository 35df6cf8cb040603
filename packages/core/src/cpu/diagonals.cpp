#include "cpu/diagonals.h"

#include <algorithm>
#include <cstring>

#include "cpu/contiguous.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

// Returns a + b, clamped to [0, limit].
int64_t clamped_sum(int64_t a, int64_t b, int64_t limit) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return b > 0 ? limit : 0;
    return std::clamp<int64_t>(sum, 0, limit);
}

// The columns [from, to) of a row, which are kept.
struct Columns {
    int64_t from, to;
};
template <class Kept>
void triangle(KernelContext& ctx, const View& out, const View& input, Kept kept) {
    if (out.numel == 0) return;
    const View dense = contiguous_in(ctx, input);
    const int64_t rows = out.size(-2), columns = out.size(-1);
    const auto size = static_cast<int64_t>(itemsize(out.dtype));
    parallel_for(0, out.numel / columns, (1 << 15) / columns + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, next; i < end; i = next) {
            Columns c = kept(i % rows);
            next = i + 1;
            // Rows of which everything or nothing is kept are processed together.
            const int64_t count = c.to - c.from;
            if (count == 0 || count == columns) {
                const auto alike = [&](Columns other) { return other.to - other.from == count; };
                while (next < end && alike(kept(next % rows))) ++next;
            }
            const int64_t width = next == i + 1 ? columns : (next - i) * columns;
            if (next != i + 1) c = count == 0 ? Columns{width, width} : Columns{0, width};
            char* to = out.as<char>() + i * columns * size;
            const char* from = dense.as<char>() + i * columns * size;
            std::memset(to, 0, static_cast<size_t>(c.from * size));
            if (to != from)
                std::memcpy(to + c.from * size, from + c.from * size,
                            static_cast<size_t>((c.to - c.from) * size));
            std::memset(to + c.to * size, 0, static_cast<size_t>((width - c.to) * size));
        }
    });
}
Columns lower(int64_t row, int64_t columns, int64_t diagonal) {
    return {0, diagonal == INT64_MAX ? columns : clamped_sum(row, diagonal + 1, columns)};
}
Columns upper(int64_t row, int64_t columns, int64_t diagonal) {
    return {clamped_sum(row, diagonal, columns), columns};
}

// Writes the row and column indices of the kept elements, starting with row `first`. `out` determines their number.
template <class Kept>
void indices(KernelContext& ctx, const View& out, int64_t first, Kept kept) {
    if (out.numel == 0) return;
    const View numbers = out.dtype == DType::Int64 ? out : scratch_like(ctx, out, DType::Int64);
    const int64_t count = out.size(1);
    int64_t *row = numbers.as<int64_t>(), *column = row + count;
    const int64_t* const end = column;
    for (int64_t i = first; row != end; ++i) {
        const Columns c = kept(i);
        for (int64_t j = c.from; j < c.to; ++j) {
            *row++ = i;
            *column++ = j;
        }
    }
    if (out.dtype != DType::Int64) copy_to(out, numbers);
}

}  // namespace

void tril(KernelContext& ctx, const View& out, const View& input, int64_t diagonal) {
    triangle(ctx, out, input, [&](int64_t row) { return lower(row, out.size(-1), diagonal); });
}
void triu(KernelContext& ctx, const View& out, const View& input, int64_t diagonal) {
    triangle(ctx, out, input, [&](int64_t row) { return upper(row, out.size(-1), diagonal); });
}

void tril_indices(KernelContext& ctx, const View& out, int64_t, int64_t columns, int64_t offset) {
    const int64_t first = offset < 0 ? -std::max(offset, -INT64_MAX) : 0;
    indices(ctx, out, first, [&](int64_t row) { return lower(row, columns, offset); });
}
void triu_indices(KernelContext& ctx, const View& out, int64_t, int64_t columns, int64_t offset) {
    indices(ctx, out, 0, [&](int64_t row) { return upper(row, columns, offset); });
}

}  // namespace rushlight::cpu
