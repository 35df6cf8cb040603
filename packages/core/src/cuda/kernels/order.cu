// Sorting of elements along a dimension, and selection by rank. Each short row is sorted by a block, in shared memory. Long
// rows are sorted together, by radix sort.
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "cuda/ordering.h"
#include "cuda/sorting.h"
#include "ops/functors/order.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

// --- Keys -------------------------------------------------------------------------------------------

/// Sort keys. Sorting by their lowest `bits` bits sorts the elements in ascending or descending order. If `with_rows` is true, the
/// bits above these contain the number of the row.
struct Keys {
    int64_t total, n;
    int bits;
    bool descending, with_rows;
};
template <class T>
__global__ void __launch_bounds__(kThreads) make_keys(const Keys k, const T* elements, uint64_t* keys) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < k.total; i += step) {
        const KeyOf<T> key = key_of(elements[i]);
        const uint64_t ordered = k.descending ? static_cast<KeyOf<T>>(~key) : key;
        keys[i] = k.with_rows ? static_cast<uint64_t>(i / k.n) << k.bits | ordered : ordered;
    }
}
/// Computes keys that contain only the row number, for elements that are already sorted by value.
__global__ void __launch_bounds__(kThreads)
    row_keys(const int64_t* numbers, int64_t total, int64_t n, uint64_t* keys) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < total; i += step)
        keys[i] = static_cast<uint64_t>(numbers[i] / n);
}

// --- Short rows -------------------------------------------------------------------------------------

constexpr int kShort = 1024;

struct Room {
    uint64_t keys[kShort];
    uint16_t positions[kShort];
};
/// Sorts rows by key and position with a bitonic network (K. E. Batcher, "Sorting networks and their applications",
/// 1968). The positions make all entries different, so that the order is stable.
template <class T>
__global__ void __launch_bounds__(kThreads)
    order_short(const T* elements, int64_t* numbers, int64_t rows, int n, int width, bool descending) {
    __shared__ Room room;
    const int threads = static_cast<int>(blockDim.x), t = static_cast<int>(threadIdx.x);
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        __syncthreads();  // all threads have read the shared memory
        for (int i = t; i < width; i += threads) {
            const KeyOf<T> key = i < n ? key_of(elements[row * n + i]) : KeyOf<T>(0);
            room.keys[i] = i < n ? (descending ? static_cast<KeyOf<T>>(~key) : key) : ~uint64_t{0};
            room.positions[i] =
                static_cast<uint16_t>(i);  // padding has the largest key and position, so it is last
        }
        for (int size = 2; size <= width; size *= 2)
            for (int apart = size / 2; apart > 0; apart /= 2) {
                __syncthreads();
                for (int k = t; k < width / 2; k += threads) {
                    const int low = k / apart * apart * 2 + k % apart, high = low + apart;
                    const uint64_t a = room.keys[low], b = room.keys[high];
                    const uint16_t at_a = room.positions[low], at_b = room.positions[high];
                    const bool behind = a > b || (a == b && at_a > at_b);
                    if (behind != ((low & size) == 0)) continue;
                    room.keys[low] = b;
                    room.keys[high] = a;
                    room.positions[low] = at_b;
                    room.positions[high] = at_a;
                }
            }
        __syncthreads();
        for (int i = t; i < n; i += threads) numbers[row * n + i] = row * n + room.positions[i];
    }
}

// --- Results ----------------------------------------------------------------------------------------

/// Writes the first `k` elements of each row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    write_first(const T* elements, const int64_t* numbers, int64_t rows, int64_t n, int64_t k, T* values,
                int64_t* indices) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < rows * k; i += step) {
        const int64_t number = numbers[i / k * n + i % k];
        values[i] = elements[number];
        indices[i] = number % n;
    }
}

enum class Rank { Kth, Median, NanMedian, Mode };

/// Writes, for each row, the element of a given rank. NaN is the largest value.
template <class T>
__global__ void __launch_bounds__(kThreads)
    write_rank(const T* elements, const int64_t* numbers, int64_t rows, int64_t n, Rank rank, int64_t k,
               T* values, int64_t* indices) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; row < rows; row += step) {
        const int64_t* const number = numbers + row * n;
        const auto key = [&](int64_t i) { return key_of(elements[number[i]]); };
        int64_t known = n;  // number of elements that are not NaN
        if constexpr (kInfinityBits<T> != 0) {
            int64_t low = 0;
            while (low < known) {
                const int64_t middle = (low + known) / 2;
                if (key(middle) != static_cast<KeyOf<T>>(~KeyOf<T>(0))) low = middle + 1;
                else known = middle;
            }
        }
        int64_t at = k;
        if (rank == Rank::Median) at = known < n ? known : (n - 1) / 2;
        else if (rank == Rank::NanMedian) at = known > 0 ? (known - 1) / 2 : 0;
        else if (rank ==
                 Rank::Mode) {  // the last occurrence of the most frequent value; of ties, the smallest value
            int64_t most = 0, begin = 0;
            at = 0;
            for (int64_t i = 1; i <= known; ++i) {
                if (i < known && key(i) == key(begin)) continue;
                if (i - begin > most) {
                    most = i - begin;
                    at = i - 1;
                }
                begin = i;
            }
            if (known == 0) at = -1;
        }
        // If all elements are NaN, the mode is the first element.
        const int64_t found = at < 0 ? row * n : number[at];
        values[row] = elements[found];
        if (indices) indices[row] = found % n;
    }
}

/// A view whose dimension `dim` is moved to the end.
struct WithLast {
    int64_t sizes[64], strides[64];
    View view;

    WithLast(const View& v, int64_t dim) : view(v) {
        if (v.ndim < 2) return;
        if (dim < 0) dim += v.ndim;
        int to = 0;
        for (int d = 0; d < v.ndim; ++d)
            if (d != dim) {
                sizes[to] = v.sizes[d];
                strides[to++] = v.strides[d];
            }
        sizes[to] = v.sizes[dim];
        strides[to] = v.strides[dim];
        view.sizes = sizes;
        view.strides = strides;
        view.contiguous = v.contiguous && dim == v.ndim - 1;
    }
    WithLast(const WithLast&) = delete;
};

/// Row-major memory for an output: the output's own memory, or scratch memory that is copied to the output at the end.
class OutRows {
  public:
    OutRows(const KernelArgs& args, const View& out)
        : context_(args.context), out_(out), strides_(out.sizes, out.ndim) {
        data_ = out.contiguous
                    ? out.data
                    : scratch<char>(context_, out.numel * static_cast<int64_t>(itemsize(out.dtype)));
    }
    template <class T>
    T* as() const {
        return static_cast<T*>(data_);
    }
    void finish() const {
        if (!out_.contiguous)
            queue_copy(out_, View{data_, out_.sizes, strides_.strides, out_.numel, out_.ndim, out_.dtype, 1},
                       context_);
    }

  private:
    KernelContext* context_;
    const View& out_;
    RowMajor strides_;
    void* data_;
};

void queue_first(const KernelArgs& args, int64_t dim, bool descending) {
    const View& in = args.in(0);
    if (args.out(0).numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    const WithLast elements(in, dim), values(args.out(0), dim), indices(args.out(1), dim);
    const int64_t n = in.ndim ? elements.view.size(-1) : 1, rows = in.numel / n, k = values.view.numel / rows;
    const void* data = dense_bytes(args.context, elements.view);
    const int64_t* numbers = queue_order(args.context, data, in.dtype, rows, n, descending);
    const OutRows value(args, values.view), index(args, indices.view);
    by_size(in.dtype, [&]<class T>(T) {
        launch(&write_first<T>, Grid{blocks_for(rows * k), kThreads}, stream, static_cast<const T*>(data),
               numbers, rows, n, k, value.as<T>(), index.as<int64_t>());
    });
    value.finish();
    index.finish();
}

void queue_rank(const KernelArgs& args, const View& elements, int64_t n, Rank rank, int64_t k,
                int64_t* indices) {
    const View& values = args.out(0);
    const void* data = dense_bytes(args.context, elements);
    const int64_t rows = elements.numel / n;
    const int64_t* numbers = queue_order(args.context, data, elements.dtype, rows, n, false);
    by_ordered_type(elements.dtype, [&]<class T>(T) {
        launch(&write_rank<T>, Grid{blocks_for(rows), kThreads}, queue_of(args), static_cast<const T*>(data),
               numbers, rows, n, rank, k, values.as<T>(), indices);
    });
}
BackendStatus chosen(const KernelArgs* args, int64_t dim, Rank rank, int64_t k = 0) {
    return guarded([=] {
        const View& in = args->in(0);
        if (args->out(0).numel == 0) return;
        queue_of(*args);
        const WithLast elements(in, dim);
        queue_rank(*args, elements.view, in.ndim ? elements.view.size(-1) : 1, rank, k,
                   args->out(1).as<int64_t>());
    });
}
BackendStatus chosen_of_all(const KernelArgs* args, Rank rank) {
    return guarded([=] {
        const View& in = args->in(0);
        queue_of(*args);
        if (in.numel > 0) return queue_rank(*args, in, in.numel, rank, 0, nullptr);
        queue_fill(args->out(0),
                   Param{Param::Kind::Float, 0, {.floating = std::numeric_limits<double>::quiet_NaN()}},
                   *args);
    });
}

}  // namespace

int64_t* queue_order(KernelContext* context, const void* elements, DType dtype, int64_t rows, int64_t n,
                     bool descending) {
    const cudaStream_t stream = queue_of(context);
    const int64_t total = rows * n;
    if (n <= kShort) {
        int width = 1;
        while (width < n) width *= 2;
        const unsigned threads = width / 2 < 32         ? 32
                                 : width / 2 < kThreads ? static_cast<unsigned>(width / 2)
                                                        : kThreads;
        auto* numbers = scratch<int64_t>(context, total);
        by_ordered_type(dtype, [&]<class T>(T) {
            launch(&order_short<T>, Grid{static_cast<unsigned>(rows < (1 << 16) ? rows : 1 << 16), threads},
                   stream, static_cast<const T*>(elements), numbers, rows, static_cast<int>(n), width,
                   descending);
        });
        return numbers;
    }
    const int bits = 8 * static_cast<int>(itemsize(dtype)), row_bits = bits_below(rows);
    const bool together = bits + row_bits <= 64;
    auto* keys = scratch<uint64_t>(context, total);
    by_ordered_type(dtype, [&]<class T>(T) {
        launch(&make_keys<T>, Grid{blocks_for(total), kThreads}, stream,
               Keys{total, n, bits, descending, together && rows > 1}, static_cast<const T*>(elements), keys);
    });
    Sorted sorted = queue_sort(context, keys, nullptr, total, together ? bits + row_bits : bits);
    if (!together && rows > 1) {
        launch(&row_keys, Grid{blocks_for(total), kThreads}, stream, sorted.numbers, total, n, sorted.keys);
        sorted = queue_sort(context, sorted.keys, sorted.numbers, total, row_bits);
    }
    return sorted.numbers;
}

BackendStatus sort(const KernelArgs* args) {
    return guarded([args] { queue_first(*args, args->params[0].as_int(), args->params[1].as_bool()); });
}
BackendStatus topk(const KernelArgs* args) {
    return guarded([args] { queue_first(*args, args->params[1].as_int(), args->params[2].as_bool()); });
}
BackendStatus kthvalue(const KernelArgs* args) {
    return chosen(args, args->params[1].as_int(), Rank::Kth, args->params[0].as_int() - 1);
}
BackendStatus median_dim(const KernelArgs* args) {
    return chosen(args, args->params[0].as_int(), Rank::Median);
}
BackendStatus nanmedian_dim(const KernelArgs* args) {
    return chosen(args, args->params[0].as_int(), Rank::NanMedian);
}
BackendStatus mode(const KernelArgs* args) { return chosen(args, args->params[0].as_int(), Rank::Mode); }
BackendStatus median(const KernelArgs* args) { return chosen_of_all(args, Rank::Median); }
BackendStatus nanmedian(const KernelArgs* args) { return chosen_of_all(args, Rank::NanMedian); }

}  // namespace rushlight::cuda
