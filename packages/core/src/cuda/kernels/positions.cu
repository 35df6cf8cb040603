// Elements at other positions: gather and scatter along a dimension, filling of slices by index, reversal of dimensions, and
// triangular parts of matrices. An index out of range raises an error when the host next waits: cuda/alarm.h. If several
// elements are scattered to one position, any one of them is kept.
#include "cuda/alarm.h"
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "ops/functors/searching.h"

namespace rushlight::cuda {
namespace {

/// The elements of a row-major index tensor and, for each of these elements, the offsets in the tensor and in the
/// source.
struct Positions {
    int ndim, dim;
    int64_t n, size;  // number of elements of the index; size of the tensor along `dim`
    int64_t sizes[kLoopDims], strides[kLoopDims], source[kLoopDims];
    const int64_t* index;
    Alarm alarm;

    Positions(const KernelArgs& args, const View& tensor, const View& positions, int64_t along,
              const View* src)
        : ndim(positions.ndim),
          dim(static_cast<int>(along < 0 ? along + tensor.ndim : along)),
          n(positions.numel),
          size(tensor.ndim == 0 ? 1 : tensor.size(dim)),
          index(dense<int64_t>(args.context, positions)),
          alarm(alarm_of(args.context)) {
        if (ndim > kLoopDims || tensor.ndim > kLoopDims)
            fail(BackendStatus::NotImplemented, "has no kernel for more than %d dimensions", kLoopDims);
        for (int d = 0; d < ndim; ++d) {
            sizes[d] = positions.size(d);
            // A tensor without dimensions may have an index with one dimension.
            strides[d] = tensor.ndim == 0 ? 0 : tensor.stride(d);
            source[d] = !src || src->ndim == 0 ? 0 : src->stride(d);
        }
        if (size == 0) fail(BackendStatus::Index, "an index is out of range for a dimension of size 0");
    }
    struct Both {
        int64_t in_tensor, in_source;
    };
    __device__ Both operator[](int64_t i) const {
        const int64_t at = alarm.checked(index[i], size);
        Both found = {0, 0};
        for (int d = ndim - 1; d >= 0; --d) {
            const int64_t k = i % sizes[d];
            i /= sizes[d];
            found.in_tensor += (d == dim ? at : k) * strides[d];
            found.in_source += k * source[d];
        }
        return found;
    }
};

/// The elements of the slices that an index selects along `dim`.
struct Slices {
    static constexpr int64_t kNowhere = INT64_MIN;
    int ndim, dim;
    int64_t n, size, count;  // number of elements; size of the tensor along `dim`; length of the index
    int64_t sizes[kLoopDims], strides[kLoopDims];
    const int64_t* index;
    Alarm alarm;

    Slices(const KernelArgs& args, const View& tensor, const View& which, int64_t along)
        : ndim(tensor.ndim),
          dim(static_cast<int>(along < 0 ? along + tensor.ndim : along)),
          n(which.numel),
          size(tensor.ndim == 0 ? 1 : tensor.size(dim)),
          count(which.numel),
          index(dense<int64_t>(args.context, which)),
          alarm(alarm_of(args.context)) {
        if (ndim > kLoopDims)
            fail(BackendStatus::NotImplemented, "has no kernel for more than %d dimensions", kLoopDims);
        if (ndim == 0) {  // treated as one dimension of one element
            ndim = 1;
            dim = 0;
            sizes[0] = count;
            strides[0] = 0;
            return;
        }
        for (int d = 0; d < ndim; ++d) {
            sizes[d] = d == dim ? count : tensor.size(d);
            strides[d] = tensor.stride(d);
            if (d != dim) n *= sizes[d];
        }
    }
    /// Returns the offset of element `i`, or kNowhere if the index is out of range.
    __device__ int64_t offset(int64_t i) const {
        int64_t found = 0;
        for (int d = ndim - 1; d >= 0; --d) {
            int64_t k = i % sizes[d];
            i /= sizes[d];
            if (d == dim) {
                k = index[k] < 0 ? index[k] + size : index[k];
                if (k < 0 || k >= size) {
                    alarm.raise();
                    return kNowhere;
                }
            }
            found += k * strides[d];
        }
        return found;
    }
};

template <class T>
__global__ void __launch_bounds__(kThreads) gather_elements(const Positions p, T* out, const T* in) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.n; i += step)
        out[i] = in[p[i].in_tensor];
}
/// Copies the elements of `src` to the indexed elements of `to`. If an index is out of range, its element is not
/// copied.
template <class T>
__global__ void __launch_bounds__(kThreads) scatter_elements(const Positions p, T* to, const T* src) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.n; i += step) {
        const Positions::Both at = p[i];
        if (p.index[i] >= 0 && p.index[i] < p.size) to[at.in_tensor] = src[at.in_source];
    }
}

/// Writes the element at `value` to all elements of the slices that `index` selects. Negative indices count from the end.
template <class T>
__global__ void __launch_bounds__(kThreads) fill_slices(const Slices s, T* to, const T* value) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < s.n; i += step) {
        const int64_t at = s.offset(i);
        if (at != Slices::kNowhere) to[at] = *value;
    }
}

/// Writes a number, converted to `dtype`, to the device's memory, and returns a view of it without dimensions.
View element(const KernelArgs& args, const Param& value, DType dtype) {
    const View one{
        scratch<char>(args.context, static_cast<int64_t>(itemsize(dtype))), nullptr, nullptr, 1, 0, dtype, 1};
    queue_fill(one, value, args);
    return one;
}

/// Copies row-major matrices, and writes zeros above or below the diagonal `diagonal`.
template <class T>
__global__ void __launch_bounds__(kThreads) keep_triangle(T* out, const T* in, int64_t n, int64_t rows,
                                                          int64_t columns, int64_t diagonal, bool lower) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        const int64_t apart = i % columns - i / columns % rows;
        out[i] = (lower ? apart <= diagonal : apart >= diagonal) ? in[i] : T();
    }
}

/// The elements of a matrix on and below a diagonal, or on and above a diagonal, listed row by row. In row r, a lower
/// triangle consists of the first clamp(r + shift, 0, columns) elements, and an upper triangle consists of the
/// remaining elements.
struct Triangle {
    int64_t rows, columns, shift, count;
    bool lower;

    Triangle(const KernelArgs& args, bool lower)
        : rows(args.params[0].as_int()),
          columns(args.params[1].as_int()),
          shift(args.params[2].as_int()),
          count(args.out(0).sizes[1]),
          lower(lower) {
        // Diagonals outside of the matrix are replaced by the nearest ones, so that sums do not overflow.
        shift = shift < -rows ? -rows : shift > columns ? columns : shift;
        if (lower) ++shift;
    }
    __device__ int64_t before_diagonal(int64_t row) const {
        const int64_t n = row + shift;
        return n < 0 ? 0 : n > columns ? columns : n;
    }
    /// Returns the sum of clamp(x, 0, columns) over all x below n. Differences of such sums are correct even if the
    /// sums overflow.
    __device__ uint64_t sum_below(int64_t n) const {
        if (n <= 0) return 0;
        const auto least = static_cast<uint64_t>(n < columns ? n : columns), all = static_cast<uint64_t>(n);
        const uint64_t triangle = least % 2 ? (least - 1) / 2 * least : least / 2 * (least - 1);
        return triangle + (all - least) * static_cast<uint64_t>(columns);
    }
    /// Returns the number of elements in the rows before `row`.
    __device__ int64_t start(int64_t row) const {
        const auto left = static_cast<int64_t>(sum_below(row + shift) - sum_below(shift));
        return lower ? left : row * columns - left;
    }
    __device__ int64_t first_column(int64_t row) const { return lower ? 0 : before_diagonal(row); }
};

struct WriteIndices {
    Triangle t;
    int64_t* out;
    __device__ void operator()(int64_t i) const {
        const int64_t row = functors::first_position(t.rows, [&](int64_t r) { return t.start(r + 1) <= i; });
        out[i] = row;
        out[t.count + i] = t.first_column(row) + i - t.start(row);
    }
};

void queue_indices(const KernelArgs& args, bool lower) {
    const View& out = args.out(0);
    if (out.numel == 0) return;
    queue_of(args);
    const Triangle triangle(args, lower);
    const DenseOut<int64_t> to(args.context, out);
    queue_for_each(args, triangle.count, WriteIndices{triangle, to.data()});
    to.finish();
}

void queue_scatter(const KernelArgs& args, const View& index, const View& src) {
    const View& to = args.in(0);
    const cudaStream_t stream = queue_of(args);
    const Positions positions(args, to, index, args.params[0].as_int(), &src);
    by_size(to.dtype, [&]<class T>(T) {
        launch(&scatter_elements<T>, Grid{blocks_for(index.numel), kThreads}, stream, positions, to.as<T>(),
               src.as<const T>());
    });
}

void queue_triangle(const KernelArgs& args, bool lower) {
    const View& out = args.out(0);
    if (out.numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const void* from = dense_bytes(args.context, args.in(0));
    const RowMajor strides(out.sizes, out.ndim);
    void* to = out.contiguous
                   ? out.data
                   : scratch<char>(args.context, out.numel * static_cast<int64_t>(itemsize(out.dtype)));
    by_size(out.dtype, [&]<class T>(T) {
        launch(&keep_triangle<T>, Grid{blocks_for(out.numel), kThreads}, stream, static_cast<T*>(to),
               static_cast<const T*>(from), out.numel, out.size(-2), out.size(-1), args.params[0].as_int(),
               lower);
    });
    if (!out.contiguous)
        queue_copy(out, View{to, out.sizes, strides.strides, out.numel, out.ndim, out.dtype, 1},
                   args.context);
}

}  // namespace

BackendStatus gather(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const Positions positions(*args, in, args->in(1), args->params[0].as_int(), nullptr);
        by_size(out.dtype, [&]<class T>(T) {
            launch(&gather_elements<T>, Grid{blocks_for(out.numel), kThreads}, stream, positions, out.as<T>(),
                   in.as<const T>());
        });
    });
}

BackendStatus scatter(const KernelArgs* args) {
    return guarded([args] {
        const View& to = args->in(0);
        if (args->in(1).numel == 0) return;
        queue_of(*args);
        const Apart index(*args, args->in(1), args->in(1).dtype, to), src(*args, args->in(2), to.dtype, to);
        queue_scatter(*args, index.view, src.view);
    });
}

BackendStatus scatter_value(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &given = args->in(1);
        if (given.numel == 0) return;
        queue_of(*args);
        const Apart index(*args, given, given.dtype, to);
        queue_scatter(*args, index.view, element(*args, args->params[1], to.dtype));
    });
}

BackendStatus index_fill(const KernelArgs* args) {
    return guarded([args] {
        const View &to = args->in(0), &given = args->in(1);
        if (given.numel == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const Apart index(*args, given, given.dtype, to);
        const Slices slices(*args, to, index.view, args->params[0].as_int());
        if (slices.size == 0)
            fail(BackendStatus::Index, "an index is out of range for a dimension of size 0");
        if (slices.n == 0) return;
        const View value = element(*args, args->params[1], to.dtype);
        by_size(to.dtype, [&]<class T>(T) {
            launch(&fill_slices<T>, Grid{blocks_for(slices.n), kThreads}, stream, slices, to.as<T>(),
                   value.as<const T>());
        });
    });
}

BackendStatus flip(const KernelArgs* args) {
    return guarded([args] {
        const View &out = args->out(0), &in = args->in(0);
        if (out.numel == 0) return;
        queue_of(*args);
        int64_t strides[64], first = 0;
        for (int d = 0; d < in.ndim; ++d) strides[d] = in.stride(d);
        for (int64_t given : args->params[0].as_ints()) {
            const int64_t d = given < 0 ? given + in.ndim : given;
            first += (in.size(static_cast<int>(d)) - 1) * in.stride(static_cast<int>(d));
            strides[d] = -in.stride(static_cast<int>(d));
        }
        char* data = in.as<char>() + first * static_cast<int64_t>(itemsize(in.dtype));
        queue_copy(out, View{data, in.sizes, strides, in.numel, in.ndim, in.dtype, 0}, args->context);
    });
}

BackendStatus tril(const KernelArgs* args) {
    return guarded([args] { queue_triangle(*args, true); });
}
BackendStatus triu(const KernelArgs* args) {
    return guarded([args] { queue_triangle(*args, false); });
}

BackendStatus tril_indices(const KernelArgs* args) {
    return guarded([args] { queue_indices(*args, true); });
}
BackendStatus triu_indices(const KernelArgs* args) {
    return guarded([args] { queue_indices(*args, false); });
}

}  // namespace rushlight::cuda
