#include "cpu/indexing.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "cpu/contiguous.h"
#include "cpu/index_select_kernels.h"
#include "cpu/positions.h"
#include "rushlight/error.h"
#include "rushlight/parallel.h"

namespace rushlight::cpu {
namespace {

constexpr int64_t kWork = 1 << 14;  // minimum number of indices per thread

// The elements of a tensor that index tensors select. Each combination of indices selects a slice, which extends
// over the dimensions without an index and is represented by its offset.
class Indexed {
  public:
    Indexed(KernelContext& ctx, const View& t, Views indices) {
        int first = t.ndim, last = -1;
        for (int d = 0; d < indices.size; ++d) {
            if (!indices[d].defined()) continue;
            first = std::min(first, d);
            last = d;
            join(indices[d]);
            ++num_;
        }
        const bool adjacent = num_ == 0 || last - first + 1 == num_;
        const int split = adjacent && num_ > 0 ? first : 0;
        View joint{nullptr, joint_, joint_, 1, joint_ndim_, DType::Int64, 0};
        for (int d = 0; d < joint_ndim_; ++d) joint.numel *= joint_[d];
        slices_.n = joint.numel;
        slices_.stride = 1;
        dims_ = scratch<Dimension>(ctx, num_);
        int k = 0;
        for (int d = 0; d < t.ndim; ++d) {
            const bool indexed = d < indices.size && indices[d].defined();
            if (t.numel > 0) slices_.size += (t.sizes[d] - 1) * t.strides[d];
            if (indexed) {
                const View dense = contiguous_in(ctx, broadcast_to(ctx, indices[d], joint), DType::Int64);
                dims_[k++] = {dense.as<int64_t>(), t.sizes[d], t.strides[d], d};
            } else {
                (d < split ? slices_.before : slices_.after).push(t.sizes[d], t.strides[d]);
            }
        }
        for (int d = 0; d < split; ++d) shape_[ndim_++] = t.sizes[d];
        for (int d = 0; d < joint_ndim_; ++d) shape_[ndim_++] = joint_[d];
        for (int d = 0; d < slices_.after.ndim; ++d) shape_[ndim_++] = slices_.after.sizes[d];
        slices_.run = slices_.after.take_run();
    }

    int64_t count() const { return slices_.n; }
    // Number of elements between the tensor's first and last element in memory, inclusive.
    int64_t span() const { return slices_.size; }
    // Returns a view without data that has the indexed shape, to which values are broadcast.
    View like() const {
        View v{nullptr, shape_, shape_, 1, ndim_, DType::Int64, 0};
        for (int d = 0; d < ndim_; ++d) v.numel *= shape_[d];
        return v;
    }
    // Whether each combination of indices selects a single element.
    bool of_elements() const {
        return slices_.run == 1 && slices_.before.count == 1 && slices_.after.count == 1;
    }

    // Computes the offsets of indices begin .. end-1. Returns false if an index is out of range.
    bool offsets(int64_t* to, int64_t begin, int64_t end) const {
        if (num_ == 0) std::fill_n(to, end - begin, 0);
        bool good = true;
        for (int k = 0; k < num_; ++k) {
            const Dimension& d = dims_[k];
            good &= position_kernels().offsets(to, d.index + begin, end - begin, d.size, d.stride, k > 0);
        }
        return good;
    }
    // Computes the offsets of all indices and returns the slices at these offsets.
    const IndexedSlices& slices(KernelContext& ctx, const char* op) {
        int64_t* all = scratch<int64_t>(ctx, slices_.n);
        std::atomic<bool> good = true;
        parallel_for(0, slices_.n, kWork, [&](int64_t begin, int64_t end) {
            if (!offsets(all + begin, begin, end)) good = false;
        });
        if (!good) fail(op);
        slices_.index = all;
        return slices_;
    }
    const IndexedSlices& slices() const { return slices_; }
    [[noreturn, gnu::cold]] void fail(const char* op) const {
        for (int k = 0; k < num_; ++k)
            for (int64_t i = 0; i < slices_.n; ++i) {
                const Dimension& d = dims_[k];
                RL_CHECK(d.index[i] >= -d.size && d.index[i] < d.size, throw_index,
                         "%s: index %lld is out of range for dimension %d of size %lld", op,
                         static_cast<long long>(d.index[i]), d.dim, static_cast<long long>(d.size));
            }
        __builtin_unreachable();
    }

  private:
    struct Dimension {
        const int64_t* index;
        int64_t size, stride;
        int dim;
    };

    // Broadcasts the shape of `index` with the shapes before it. The operator has checked that they are compatible.
    void join(const View& index) {
        if (index.ndim > joint_ndim_) {
            std::copy_backward(joint_, joint_ + joint_ndim_, joint_ + index.ndim);
            std::fill_n(joint_, index.ndim - joint_ndim_, 1);
            joint_ndim_ = index.ndim;
        }
        int64_t* last = joint_ + joint_ndim_ - index.ndim;
        for (int d = 0; d < index.ndim; ++d)
            if (index.sizes[d] != 1) last[d] = index.sizes[d];
    }

    int num_ = 0, joint_ndim_ = 0, ndim_ = 0;
    Dimension* dims_;
    int64_t joint_[kMaxDims], shape_[kMaxDims];
    IndexedSlices slices_;
};

void add_at(KernelContext& ctx, const Indexed& indexed, const IndexedSlices& slices, const View& to,
            const View& values) {
    const View full = contiguous_in(ctx, broadcast_to(ctx, values, indexed.like()), to.dtype);
    add_slices(slices, to.data, full.data, to.dtype);
}

}  // namespace

void index(KernelContext& ctx, const View& out, const View& input, Views indices) {
    Indexed indexed(ctx, input, indices);
    const size_t size = itemsize(input.dtype);
    if (!indexed.of_elements()) {
        const IndexedSlices& slices = indexed.slices(ctx, "index");
        if (out.numel > 0) read_slices(slices, out.data, input.data, size);
        return;
    }
    // Processes the indices in blocks, whose offsets stay in the cache.
    std::atomic<bool> good = true;
    parallel_for(0, indexed.count(), kWork, [&](int64_t begin, int64_t end) {
        constexpr int64_t kBlock = 4096;
        int64_t offsets[kBlock];
        IndexRows row;
        row.index = offsets;
        row.size = indexed.span();
        row.stride = 1;
        for (int64_t i = begin; i < end && good; i += kBlock) {
            row.width = std::min(end - i, kBlock);
            if (!indexed.offsets(offsets, i, i + row.width)) good = false;
            else
                position_kernels().gather(row, {0, 1, 0, row.width},
                                          out.as<char>() + static_cast<size_t>(i) * size, input.data, size);
        }
    });
    if (!good) indexed.fail("index");
}

void index_backward(KernelContext& ctx, const View& out, const View& grad, Views indices, Ints) {
    const WidenedOut sums(ctx, out);
    clear(sums.view());
    Indexed indexed(ctx, sums.view(), indices);
    const IndexedSlices& slices = indexed.slices(ctx, "index");
    if (grad.numel > 0) add_at(ctx, indexed, slices, sums.view(), grad);
    sums.finish();
}

void index_put_check(KernelContext& ctx, const View& input, Views indices, const View&, bool) {
    // Keeps the offsets for index_put, because the tensor that it writes may share memory with the indices.
    auto* indexed = new (scratch<Indexed>(ctx, 1)) Indexed(ctx, input, indices);
    indexed->slices(ctx, "index_put_");
    ctx.kept = indexed;
}
void index_put(KernelContext& ctx, const View& input, Views indices, const View& values, bool accumulate) {
    const auto& indexed = *static_cast<const Indexed*>(ctx.kept);
    const IndexedSlices& slices = indexed.slices();
    if (slices.n == 0 || input.numel == 0) return;
    const View own = apart_from(ctx, values, input);
    if (accumulate && is_reduced(input.dtype)) {
        const WidenedSums sums(ctx, input);
        Indexed wide(ctx, sums.view(), indices);
        add_at(ctx, wide, wide.slices(ctx, "index_put_"), sums.view(), own);
        return sums.finish(ctx);
    }
    if (accumulate) return add_at(ctx, indexed, slices, input, own);
    const bool one = own.numel == 1;
    const View given = one ? own : broadcast_to(ctx, own, indexed.like());
    write_slices(slices, input.data, contiguous_in(ctx, given, input.dtype).data, one, itemsize(input.dtype));
}

}  // namespace rushlight::cpu
