// Counts and finds nonzero elements, and reads and writes the elements at a mask.
#include "cuda/kernels.h"
#include "cuda/kernels/marks.cuh"
#include "cuda/kernels/walk.cuh"

namespace rushlight::cuda {
namespace {

/// A tensor whose elements serve as marks: each element that is not zero is marked.
struct Marks {
    const char* data;
    DType dtype;
    int64_t size, n;
    Walk walk;

    /// Reads `v`, which is broadcast to the sizes of `like`.
    Marks(const View& v, const View& like)
        : data(v.as<const char>()),
          dtype(v.dtype),
          size(static_cast<int64_t>(itemsize(v.dtype))),
          n(like.numel) {
        for (int d = 0; d < like.ndim; ++d) {
            const int at = d - like.ndim + v.ndim;
            walk.push(like.sizes[d], at < 0 || v.sizes[at] == 1 ? 0 : v.strides[at]);
        }
    }
    explicit Marks(const View& v) : Marks(v, v) {}
    __device__ bool operator[](int64_t i) const { return read<bool>(data + walk.offset(i) * size, dtype); }
};

/// Writes the coordinates of the first `limit` marked elements, one row for each element.
struct WriteCoordinates {
    int64_t* out;
    int64_t limit;
    int ndim;
    int64_t sizes[64];

    WriteCoordinates(const View& to, const View& of)
        : out(to.as<int64_t>()), limit(to.sizes[0]), ndim(of.ndim) {
        for (int d = 0; d < ndim; ++d) sizes[d] = of.sizes[d];
    }
    __device__ void operator()(int64_t i, int64_t at) const {
        if (at >= limit) return;
        for (int d = ndim - 1; d >= 0; --d) {
            out[at * ndim + d] = i % sizes[d];
            i /= sizes[d];
        }
    }
};
template <class T>
struct ReadMarked {
    T* out;
    const T* in;
    Walk walk;
    __device__ void operator()(int64_t i, int64_t at) const { out[at] = in[walk.offset(i)]; }
};
/// Writes values to the marked elements. If there are more marked elements than values, raises the alarm and writes
/// nothing.
template <class T>
struct WriteMarked {
    T* to;
    Walk walk;
    const T* values;
    int64_t count;
    const int64_t* total;
    Alarm alarm;
    __device__ void operator()(int64_t i, int64_t at) const {
        if (*total <= count) to[walk.offset(i)] = values[at];
        else alarm.raise(Cause::FewValues);
    }
};

}  // namespace

BackendStatus nonzero_count(const KernelArgs* args) {
    return guarded([args] { queue_counts(*args, Marks(args->in(0)), args->out(0).as<int64_t>()); });
}
BackendStatus nonzero(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        const Marks marks(in);
        queue_each(*args, marks, queue_counts(*args, marks, nullptr), WriteCoordinates(out, in));
    });
}
BackendStatus nonzero_static(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        queue_of(*args);
        queue_fill(out, args->params[1], *args);
        nonzero(args);
    });
}

BackendStatus masked_elements_count(const KernelArgs* args) {
    return guarded([args] { queue_counts(*args, Marks(args->in(1)), args->out(0).as<int64_t>()); });
}
BackendStatus masked_elements(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        const Marks marks(args->in(1));
        const int64_t* offsets = queue_counts(*args, marks, nullptr);
        by_size(out.dtype, [&]<class T>(T) {
            queue_each(*args, marks, offsets, ReadMarked<T>{out.as<T>(), in.as<const T>(), Walk(in)});
        });
    });
}

BackendStatus masked_scatter(const KernelArgs* args) {
    return guarded([args] {
        const View& to = args->in(0);
        if (to.numel == 0) return;
        queue_of(*args);
        const Apart mask(*args, args->in(1), DType::Bool, to), source(*args, args->in(2), to.dtype, to);
        const Marks marks(mask.view, to);
        auto* total = scratch<int64_t>(args->context, 1);
        const int64_t* offsets = queue_counts(*args, marks, total);
        const void* values = dense_bytes(args->context, source.view);
        by_size(to.dtype, [&]<class T>(T) {
            queue_each(*args, marks, offsets,
                       WriteMarked<T>{to.as<T>(), Walk(to), static_cast<const T*>(values), source.view.numel,
                                      total, alarm_of(args->context)});
        });
    });
}

}  // namespace rushlight::cuda
