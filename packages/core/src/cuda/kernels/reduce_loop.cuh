// Builds the CUDA kernels of a reduction from a reducer. The interface of reducers is defined in cpu/kernels/reduce_loop.h.
// Included by generated kernel files only.
#pragma once

#include "cuda/kernels/pointwise_loop.cuh"

namespace rushlight::cuda {
namespace {

// Note [Reductions on a GPU]
// A block computes `width` results at a time. Each result is computed by kThreads / width threads, called lanes. If adjacent
// results are adjacent in memory, adjacent threads compute adjacent results; otherwise they read adjacent elements of one
// result. The elements of a result may be divided among several rows of blocks, whose partial results are joined by a second
// kernel. The division of work depends only on the shape, and partial results are joined as a tree, so that results do not
// depend on timing. A reducer that uses the indices of elements receives a contiguous run of elements in each lane, so that
// an earlier run is always joined with a later run.
//
// The kernels compute the position of an element from an index of 32 bits if the reduced elements have several dimensions,
// and they support kLoopDims dimensions. Other reductions are divided into parts (ReducedPart). Each part is reduced by a
// launch of its own, and the partial results of all parts are joined by the second kernel.
struct ReduceShape {
    int kept_dims, reduced_dims;
    uint32_t count;
    int64_t n, first;  // the number of elements, and the index of the first one
    Divider kept[kLoopDims], reduced[kLoopDims];
    int64_t kept_in[kLoopDims], kept_out[kLoopDims], kept_second[kLoopDims], reduced_in[kLoopDims];
    uint32_t width, rows;
    bool side_by_side;
};

__device__ inline int64_t offset_of(uint32_t i, int dims, const Divider* sizes, const int64_t* strides) {
    int64_t offset = 0;
    for (int d = dims - 1; d >= 0; --d) {
        const uint32_t above = sizes[d].divide(i);
        offset += (i - above * sizes[d].divisor) * strides[d];
        i = above;
    }
    return offset;
}

struct ReduceOutputs {
    char* out;
    DType dtype;
    char* second;
};

template <class R>
__device__ void finish(const R& r, const ReduceShape& s, const ReduceOutputs& to, uint32_t result,
                       const typename R::Acc& acc) {
    write<typename R::Wide>(to.out + offset_of(result, s.kept_dims, s.kept, s.kept_out), to.dtype,
                            r.finish(acc, s.n));
    if constexpr (requires { r.index(acc); }) {
        if (to.second)
            *reinterpret_cast<int64_t*>(to.second + offset_of(result, s.kept_dims, s.kept, s.kept_second)) =
                r.index(acc);
    }
}

/// Uninitialised shared memory for the partial results of a block.
template <class Acc>
struct Room {
    alignas(Acc) unsigned char bytes[kThreads * sizeof(Acc)];
    __device__ Acc* partial() { return reinterpret_cast<Acc*>(bytes); }
};

template <class R, class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    reduce(const R r, const ReduceShape s, const char* in, const ReduceOutputs to, typename R::Acc* shares) {
    using Acc = typename R::Acc;
    constexpr bool kNumbered = requires(Acc a, T x, int64_t i) { r.step(a, x, i); };
    __shared__ Room<Acc> room;
    Acc* const partial = room.partial();
    const uint32_t lanes = kThreads / s.width;
    const uint32_t column = s.side_by_side ? threadIdx.x % s.width : threadIdx.x / lanes,
                   lane = s.side_by_side ? threadIdx.x / s.width : threadIdx.x % lanes;
    Acc* const own = partial + column * lanes + lane;
    const int64_t share = (s.n + s.rows - 1) / s.rows;
    const int64_t begin = share * blockIdx.y < s.n ? share * blockIdx.y : s.n,
                  end = begin + share < s.n ? begin + share : s.n;
    const int64_t run = (end - begin + lanes - 1) / lanes;
    int64_t first = begin + lane, last = end, step = lanes;
    if (kNumbered) {
        first = begin + run * lane < end ? begin + run * lane : end;
        last = first + run < end ? first + run : end;
        step = 1;
    }
    for (uint32_t block = blockIdx.x; block * s.width < s.count; block += gridDim.x) {
        const uint32_t result = block * s.width + column;
        Acc acc = r.start();
        if (result < s.count) {
            const char* const begin_of = in + offset_of(result, s.kept_dims, s.kept, s.kept_in);
            for (int64_t i = first; i < last; i += step) {
                const int64_t at = s.reduced_dims == 1 ? i * s.reduced_in[0]
                                                       : offset_of(static_cast<uint32_t>(i), s.reduced_dims,
                                                                   s.reduced, s.reduced_in);
                const T x = static_cast<T>(*reinterpret_cast<const Stored*>(begin_of + at));
                if constexpr (kNumbered) acc = r.step(acc, x, s.first + i);
                else acc = r.step(acc, x);
            }
        }
        *own = acc;
        for (uint32_t apart = 1; apart < lanes; apart *= 2) {
            __syncthreads();
            if (lane % (2 * apart) == 0) *own = r.join(*own, own[apart]);
        }
        if (lane == 0 && result < s.count) {
            if (shares) shares[static_cast<size_t>(blockIdx.y) * s.count + result] = *own;
            else finish(r, s, to, result, *own);
        }
        __syncthreads();
    }
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    join_shares(const R r, const ReduceShape s, const ReduceOutputs to, const typename R::Acc* shares) {
    for (uint32_t result = blockIdx.x * kThreads + threadIdx.x; result < s.count;
         result += gridDim.x * kThreads) {
        typename R::Acc acc = shares[result];
        for (uint32_t row = 1; row < s.rows; ++row)
            acc = r.join(acc, shares[static_cast<size_t>(row) * s.count + result]);
        finish(r, s, to, result, acc);
    }
}

/// Divides the work on a part: Note [Reductions on a GPU].
inline ReduceShape share_work(const Reduction& r, const ReducedPart& part) {
    constexpr int64_t kBlocks = 1024, kLeastPerLane = 16;
    ReduceShape s = {};
    s.kept_dims = r.kept_dims;
    s.reduced_dims = part.dims;
    s.count = static_cast<uint32_t>(r.count);
    s.n = part.n;
    s.first = part.first;
    for (int d = 0; d < r.kept_dims; ++d) {
        s.kept[d] = Divider(static_cast<uint32_t>(r.kept[d]));
        s.kept_in[d] = r.kept_in[d];
        s.kept_out[d] = r.kept_out[d];
        s.kept_second[d] = r.kept_second[d];
    }
    for (int d = 0; d < part.dims; ++d) {
        // A single dimension needs no divider, however large it is.
        if (part.dims > 1) s.reduced[d] = Divider(static_cast<uint32_t>(part.sizes[d]));
        s.reduced_in[d] = part.strides[d];
    }
    const auto nearest = [](int dims, const int64_t* strides) {
        int64_t least = INT64_MAX;
        for (int d = 0; d < dims; ++d) least = std::abs(strides[d]) < least ? std::abs(strides[d]) : least;
        return least;
    };
    s.side_by_side = nearest(r.kept_dims, r.kept_in) < nearest(part.dims, part.strides);
    uint32_t lanes = 1;
    const int64_t most = s.side_by_side && r.count >= 32 ? kThreads / 32 : kThreads;
    while (lanes < most && lanes < part.n) lanes *= 2;
    s.width = kThreads / lanes;
    const int64_t blocks = (r.count + s.width - 1) / s.width;
    const int64_t rows = part.n / (kLeastPerLane * lanes) < kBlocks / blocks
                             ? part.n / (kLeastPerLane * lanes)
                             : kBlocks / blocks;
    s.rows = static_cast<uint32_t>(rows < 1 ? 1 : rows);
    return s;
}

template <class R, class T, class Stored>
void run_reducer(const Reduction& reduction, const Scalar* params, KernelContext* context) {
    constexpr int64_t kMost = 1 << 16;
    uint32_t rows = 0;  // of blocks, and of partial results
    for (const ReducedPart& part : reduction.parts) rows += share_work(reduction, part).rows;
    const auto count = static_cast<size_t>(reduction.count);
    const auto stream = static_cast<cudaStream_t>(context->call->stream);
    const R r(params);
    const ReduceOutputs to{reduction.out, reduction.out_dtype, reduction.second};
    typename R::Acc* shares = nullptr;
    if (rows > 1) {
        shares =
            static_cast<typename R::Acc*>(context->scratch(context, sizeof(typename R::Acc) * rows * count));
        if (!shares) throw Failure{BackendStatus::OutOfMemory, host->last_error()};
    }
    uint32_t row = 0;
    for (const ReducedPart& part : reduction.parts) {
        const ReduceShape s = share_work(reduction, part);
        const int64_t blocks = (reduction.count + s.width - 1) / s.width;
        launch(&reduce<R, T, Stored>,
               Grid{static_cast<unsigned>(blocks < kMost ? blocks : kMost), kThreads, s.rows}, stream, r, s,
               reduction.in + part.offset, to, shares ? shares + row * count : nullptr);
        row += s.rows;
    }
    if (!shares) return;
    ReduceShape whole = share_work(reduction, reduction.parts[0]);
    whole.n = reduction.n;
    whole.rows = rows;
    launch(&join_shares<R>, Grid{blocks_for(reduction.count), kThreads}, stream, r, whole, to, shares);
}

template <template <class> class R, class... T>
constexpr ReduceTable reducers(Types<T...>) {
    ReduceTable table{};
    ((table.loop[static_cast<int>(DTypeOf<T>::value)] = &run_reducer<R<T>, T, T>), ...);
    if (table.loop[static_cast<int>(DType::Float32)]) {
        table.loop[static_cast<int>(DType::Float16)] = &run_reducer<R<float>, float, Half>;
        table.loop[static_cast<int>(DType::BFloat16)] = &run_reducer<R<float>, float, BFloat16>;
    }
    return table;
}

}  // namespace
}  // namespace rushlight::cuda
