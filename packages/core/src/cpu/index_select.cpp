#include "cpu/index_select.h"

#include <algorithm>

#include "cpu/contiguous.h"
#include "cpu/index_select_kernels.h"
#include "cpu/positions.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kWork = 1 << 15;  // minimum number of elements per thread

struct Slices : IndexedSlices {
    int dim;

    Slices(KernelContext& ctx, const View& t, int64_t d, const View& given)
        : dim(static_cast<int>(d < 0 ? d + std::max(t.ndim, 1) : d)) {
        for (int k = 0; k < t.ndim; ++k)
            if (k < dim) before.push(t.sizes[k], t.strides[k]);
            else if (k > dim) after.push(t.sizes[k], t.strides[k]);
        run = after.take_run();
        if (t.ndim > 0) {
            size = t.sizes[dim];
            stride = t.strides[dim];
        }
        index = contiguous_in(ctx, given, DType::Int64).as<int64_t>();
        n = given.numel;
    }

    bool all_within() const { return position_kernels().within(index, n, size); }
    // Raises IndexError if an index is out of range. If `negative`, negative indices are allowed and count from the
    // end.
    void check(const char* op, bool negative = false) const {
        if (all_within()) return;
        for (int64_t i = 0; i < n; ++i)
            RL_CHECK(index[i] >= (negative ? -size : 0) && index[i] < size, throw_index,
                     "%s(index): index %lld is out of range for dimension %d of size %lld", op,
                     static_cast<long long>(index[i]), dim, static_cast<long long>(size));
    }
    // Replaces negative indices, which count from the end, by indices from the front.
    void from_the_front(KernelContext& ctx) {
        if (all_within()) return;
        int64_t* front = scratch<int64_t>(ctx, n);
        position_kernels().from_the_front(front, index, n, size);
        index = front;
    }
};

// Whether each slice is a single element, so that the kernels of positions.h can read and write it.
bool are_elements(const IndexedSlices& s) { return s.run == 1 && s.after.count == 1; }
IndexRows rows_of(const IndexedSlices& s) {
    IndexRows r;
    r.index = s.index;
    r.width = s.n;
    r.shared = true;
    r.size = s.size;
    r.stride = s.stride;
    r.rows = s.before;
    return r;
}
// Calls body(range) in parallel for ranges of rows. Different rows share no element.
template <class Body>
void each_row(const IndexRows& r, Body body) {
    parallel_for(0, r.rows.count, kWork / (r.width + 1) + 1,
                 [&](int64_t begin, int64_t end) { body(RowRange{begin, end, 0, r.width}); });
}
// Calls body(begin, end) in parallel for ranges of the slices' parts.
template <class Body>
void each_part(const IndexedSlices& s, Body body) {
    parallel_for(0, s.parts(), kWork / (s.n * std::min(s.run, s.kColumns) + 1) + 1, body);
}

View apart_and_dense(KernelContext& ctx, const View& v, const View& written) {
    return contiguous_in(ctx, apart_from(ctx, v, written));
}

}  // namespace

void read_slices(const IndexedSlices& s, void* out, const void* in, size_t itemsize) {
    if (s.n == 0 || s.parts() == 0) return;
    if (are_elements(s)) {
        const IndexRows rows = rows_of(s);
        const auto read = [&](RowRange range) { position_kernels().gather(rows, range, out, in, itemsize); };
        if (rows.rows.count > 1) return each_row(rows, read);
        return parallel_for(0, rows.width, kWork,
                            [&](int64_t begin, int64_t end) { read({0, 1, begin, end}); });
    }
    if (s.before.count * s.after.count > 1)
        return each_part(s, [&](int64_t begin, int64_t end) {
            index_select_kernels().select(s, out, in, itemsize, begin, end);
        });
    // There is a single piece to process, so its slices are divided among the threads.
    parallel_for(0, s.n, kWork / s.run + 1, [&](int64_t begin, int64_t end) {
        IndexedSlices some = s;
        some.index += begin;
        some.n = end - begin;
        char* to = static_cast<char*>(out) + static_cast<size_t>(begin * s.run) * itemsize;
        index_select_kernels().select(some, to, in, itemsize, 0, some.parts());
    });
}

void write_slices(const IndexedSlices& s, void* to, const void* from, bool one, size_t itemsize) {
    if (s.n == 0 || s.parts() == 0) return;
    if (are_elements(s)) {
        const IndexRows rows = rows_of(s);
        return each_row(rows, [&](RowRange range) {
            position_kernels().scatter(rows, range, to, from, one ? 0 : 1, itemsize);
        });
    }
    const auto move = one ? index_select_kernels().fill : index_select_kernels().copy;
    each_part(s, [&](int64_t begin, int64_t end) { move(s, to, from, itemsize, begin, end); });
}

void add_slices(const IndexedSlices& s, void* to, const void* from, DType dtype) {
    if (s.n == 0 || s.parts() == 0) return;
    if (are_elements(s)) {
        const IndexRows rows = rows_of(s);
        const auto add = position_kernels().add[static_cast<int>(dtype)];
        return each_row(rows, [&](RowRange range) { add(rows, range, to, from); });
    }
    const auto add = index_select_kernels().add[static_cast<int>(dtype)];
    each_part(s, [&](int64_t begin, int64_t end) { add(s, to, from, begin, end); });
}

void index_select(KernelContext& ctx, const View& out, const View& input, const View& index, int64_t dim) {
    const Slices slices(ctx, input, dim, index);
    slices.check("index_select");
    if (out.numel > 0) read_slices(slices, out.data, input.data, itemsize(out.dtype));
}

void index_add(KernelContext& ctx, const View& input, const View& index, const View& source, int64_t dim,
               const Param& alpha) {
    if (source.numel == 0) return;
    const WidenedSums sums(ctx, input);
    const View& wide = sums.view();
    const Slices slices(ctx, wide, dim, apart_from(ctx, index, input));
    View values = widened(ctx, apart_and_dense(ctx, source, input));
    const Complex<double> times = alpha;
    if (times.re != 1 || times.im != 0) {
        const View scaled = scratch_like(ctx, values, values.dtype);
        const void* factor = as_element(ctx, alpha, values.dtype);
        const auto size = static_cast<int64_t>(itemsize(values.dtype));
        const auto scale = index_select_kernels().scale[static_cast<int>(values.dtype)];
        parallel_for(0, values.numel, kWork, [&](int64_t begin, int64_t end) {
            scale(scaled.as<char>() + begin * size, values.as<char>() + begin * size, factor, end - begin);
        });
        values = scaled;
    }
    add_slices(slices, wide.data, values.data, wide.dtype);
    sums.finish(ctx);
}
void index_add_check(KernelContext& ctx, const View& input, const View& index, const View&, int64_t dim,
                     const Param&) {
    Slices(ctx, input, dim, index).check("index_add_");
}

void index_copy(KernelContext& ctx, const View& input, const View& index, const View& source, int64_t dim) {
    if (source.numel == 0) return;
    const Slices slices(ctx, input, dim, apart_from(ctx, index, input));
    const View values = apart_and_dense(ctx, source, input);
    write_slices(slices, input.data, values.data, false, itemsize(input.dtype));
}
void index_copy_check(KernelContext& ctx, const View& input, const View& index, const View&, int64_t dim) {
    Slices(ctx, input, dim, index).check("index_copy_");
}

void index_fill(KernelContext& ctx, const View& input, const View& index, int64_t dim, const Param& value) {
    if (input.numel == 0) return;
    Slices slices(ctx, input, dim, apart_from(ctx, index, input));
    slices.from_the_front(ctx);
    const void* element = as_element(ctx, value, input.dtype);
    write_slices(slices, input.data, element, true, itemsize(input.dtype));
}
void index_fill_check(KernelContext& ctx, const View& input, const View& index, int64_t dim, const Param&) {
    Slices(ctx, input, dim, index).check("index_fill_", true);
}

}  // namespace rushlight::cpu
