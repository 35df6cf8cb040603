// Offsets of elements by their flat index, and selection of elements by index tensors.
#pragma once

#include "cuda/alarm.h"
#include "cuda/kernels/bytes.cuh"

namespace rushlight::cuda {
namespace {

/// Dimensions and strides that convert a flat index to an offset. The last dimension is the innermost.
struct Walk {
    int ndim = 0;
    int64_t sizes[kLoopDims], strides[kLoopDims];

    Walk() = default;
    explicit Walk(const View& t) {
        for (int d = 0; !t.contiguous && d < t.ndim; ++d) push(t.sizes[d], t.strides[d]);
        if (t.contiguous) push(t.numel, 1);
    }
    /// Adds a dimension. It is joined with the previous dimension if both can be described as one dimension with one
    /// stride.
    void push(int64_t size, int64_t stride) {
        if (size == 1) return;
        if (ndim > 0 && strides[ndim - 1] == stride * size) {
            sizes[ndim - 1] *= size;
            strides[ndim - 1] = stride;
            return;
        }
        if (ndim == kLoopDims)
            fail(BackendStatus::NotImplemented, "has no kernel for more than %d dimensions", kLoopDims);
        sizes[ndim] = size;
        strides[ndim++] = stride;
    }
    __device__ int64_t offset(int64_t i) const {
        int64_t found = 0;
        for (int d = ndim - 1; d > 0; --d) {
            found += i % sizes[d] * strides[d];
            i /= sizes[d];
        }
        return ndim > 0 ? found + i * strides[0] : 0;
    }
};

inline constexpr int64_t kNowhere = INT64_MIN;

/// Index tensors that are read together: their elements at `i` form one multi-dimensional index.
struct Chosen {
    struct One {
        const int64_t* data;
        Walk walk;
        int64_t size, weight;  // size of the indexed dimension, and its weight in the position
    };
    One of[kLoopDims];
    int count = 0;
    Walk others;  // adds the offset of the element's own position
    bool from_end = false;  // negative indices count from the end
    int64_t skipped = kNowhere;  // value of indices that are ignored
    Alarm alarm;

    explicit Chosen(const KernelArgs& args) : alarm(alarm_of(args.context)) {}

    /// Returns the position of index `i`, or kNowhere if an index is ignored or out of range. An index out of range raises
    /// the alarm.
    __device__ int64_t at(int64_t i) const {
        int64_t position = others.offset(i);
        for (int k = 0; k < count; ++k) {
            const One& one = of[k];
            int64_t number = one.data[one.walk.offset(i)];
            if (number == skipped) return kNowhere;
            if (from_end && number < 0) number += one.size;
            if (number < 0 || number >= one.size) {
                alarm.raise();
                return kNowhere;
            }
            position += number * one.weight;
        }
        return position;
    }
};

/// Index tensors for some dimensions of a tensor, as in `input[indices]`. A position is an index into the indexed
/// dimensions, and selects a slice. `inner` iterates over the elements of a slice, in the dimensions `before` and `after`
/// the indices.
struct Indices {
    Chosen chosen;
    Walk positions, inner;  // iterate over the tensor
    int64_t n = 1, positions_count = 1, before = 1, after = 1;
    int ndim = 0, joint_ndim = 0, split;
    int64_t shape[64];  // the shape of the indexing result: before, joint, after
    int64_t joint[64];

    Indices(const KernelArgs& args, const View& t, const View* given, int64_t count) : chosen(args) {
        int first = t.ndim, last = -1, num = 0;
        for (int d = 0; d < count; ++d) {
            if (!given[d].defined()) continue;
            first = first < d ? first : d;
            last = d;
            ++num;
            join(given[d]);
        }
        split = num > 0 && last - first + 1 == num ? first : 0;
        for (int d = 0; d < joint_ndim; ++d) n *= joint[d];
        chosen.from_end = true;
        for (int d = t.ndim - 1; d >= 0; --d) {  // the last dimension has the smallest weight
            if (d >= count || !given[d].defined()) continue;
            if (chosen.count == kLoopDims)
                fail(BackendStatus::NotImplemented, "has no kernel for more than %d indices", kLoopDims);
            Chosen::One& one = chosen.of[chosen.count++];
            one.data = dense<int64_t>(args.context, given[d]);
            one.size = t.sizes[d];
            one.weight = positions_count;
            positions_count *= t.sizes[d];
            const RowMajor own(given[d].sizes, given[d].ndim);
            for (int k = 0; k < joint_ndim; ++k) {
                const int at = k - joint_ndim + given[d].ndim;
                one.walk.push(joint[k], at < 0 || given[d].sizes[at] == 1 ? 0 : own.strides[at]);
            }
        }
        for (int d = 0; d < t.ndim; ++d) {
            if (d < count && given[d].defined()) {
                positions.push(t.sizes[d], t.strides[d]);
                continue;
            }
            (d < split ? before : after) *= t.sizes[d];
            inner.push(t.sizes[d], t.strides[d]);
        }
        for (int d = 0; d < split; ++d) shape[ndim++] = t.sizes[d];
        for (int d = 0; d < joint_ndim; ++d) shape[ndim++] = joint[d];
        for (int d = split; d < t.ndim; ++d)
            if (d >= count || !given[d].defined()) shape[ndim++] = t.sizes[d];
    }

  private:
    void join(const View& index) {
        if (index.ndim > joint_ndim) {
            for (int d = joint_ndim - 1; d >= 0; --d) joint[d + index.ndim - joint_ndim] = joint[d];
            for (int d = 0; d < index.ndim - joint_ndim; ++d) joint[d] = 1;
            joint_ndim = index.ndim;
        }
        int64_t* const last = joint + joint_ndim - index.ndim;
        for (int d = 0; d < index.ndim; ++d)
            if (index.sizes[d] != 1) last[d] = index.sizes[d];
    }
};

}  // namespace
}  // namespace rushlight::cuda
