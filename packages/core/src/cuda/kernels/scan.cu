// Scans along a dimension: cumulative sums, products, logarithms of sums, maxima and minima, and linear recurrences. Each
// thread of a row processes some of its elements, and joins its state with the state before them. Long rows are divided
// among blocks. The division depends only on the shape, so results are the same in every run.
#include "cuda/kernels.h"
#include "cuda/kernels/bytes.cuh"
#include "ops/functors/scan.h"

namespace rushlight::cuda {
namespace {

using namespace functors;

// --- Scanned functions ------------------------------------------------------------------------------
// `at` reads an element, `join` appends the state of a later part to the state of an earlier part, and `put` writes a
// result.

template <class T>
struct Arrays {
    T* out;
    const T* in;
};

template <class T>
struct Sums : Arrays<T> {
    using State = ScanState<T>;
    __device__ static State nothing() { return State(0); }
    __device__ State at(int64_t position, int64_t) const { return widened(this->in[position]); }
    __device__ static State join(State a, State b) { return a + b; }
    __device__ void put(int64_t position, State s) const { this->out[position] = narrowed<T>(s); }
};
template <class T>
struct Products : Arrays<T> {
    using State = ScanState<T>;
    __device__ static State nothing() { return State(1); }
    __device__ State at(int64_t position, int64_t) const { return widened(this->in[position]); }
    __device__ static State join(State a, State b) { return a * b; }
    __device__ void put(int64_t position, State s) const { this->out[position] = narrowed<T>(s); }
};

template <class T>
struct LogSums : Arrays<T> {
    using State = LogSum;
    __device__ static State nothing() { return LogSum::nothing(); }
    __device__ State at(int64_t position, int64_t) const { return LogSum::of(widened(this->in[position])); }
    __device__ static State join(const State& a, const State& b) { return a.joined(b); }
    __device__ void put(int64_t position, const State& s) const {
        this->out[position] = narrowed<T>(s.value());
    }
};
template <class T>
struct LogSums<Complex<T>> : Arrays<Complex<T>> {
    using State = Complex<double>;
    __device__ static State nothing() { return State(-INFINITY, 0); }
    __device__ State at(int64_t position, int64_t) const { return widened(this->in[position]); }
    __device__ static State join(State a, State b) { return b.re == -INFINITY ? a : log_of_both(a, b); }
    __device__ void put(int64_t position, State s) const { this->out[position] = narrowed<Complex<T>>(s); }
};

template <class T, bool largest>
struct Extremes : Arrays<T> {
    int64_t* indices;
    struct State {
        T value;
        int64_t index;  // -1: no element yet
    };
    __device__ static State nothing() { return {T(), -1}; }
    __device__ State at(int64_t position, int64_t i) const { return {this->in[position], i}; }
    __device__ static State join(const State& a, const State& b) {
        if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
        return replaces<largest>(static_cast<Computed<T>>(b.value), static_cast<Computed<T>>(a.value)) ? b
                                                                                                       : a;
    }
    __device__ void put(int64_t position, const State& s) const {
        this->out[position] = s.value;
        indices[position] = s.index;
    }
};
template <class T>
using Largest = Extremes<T, true>;
template <class T>
using Smallest = Extremes<T, false>;

// --- Rows ------------------------------------------------------------------------------------------

constexpr int kItems = 4;
constexpr int64_t kLongPart = int64_t{1} << 14;

/// Rows that are divided into parts of `each` elements. The parts are scanned separately.
struct Parts {
    Rows rows;  // one row for each part
    int64_t size, count, each;

    Parts(int64_t outer, int64_t n, int64_t inner)
        : rows(outer, ((n < kLongPart ? n : kLongPart) + kItems - 1) / kItems, inner),
          size(n),
          count((n + kLongPart - 1) / kLongPart),
          each(n < kLongPart ? n : kLongPart) {
        rows.count *= count;
    }
};

/// Returns the joined state of the threads that precede this thread in its row, and stores the joined state of all
/// threads of the row in `all`.
template <class F, class S>
__device__ S before_lane(S* room, uint32_t lane, uint32_t lanes, S own, S& all) {
    S sum = own;
    for (uint32_t apart = 1; apart < lanes; apart *= 2) {
        __syncthreads();  // all threads have read `room`
        room[threadIdx.x] = sum;
        __syncthreads();
        if (lane >= apart) sum = F::join(room[threadIdx.x - apart], sum);
    }
    __syncthreads();
    room[threadIdx.x] = sum;
    __syncthreads();
    all = room[threadIdx.x - lane + lanes - 1];
    return lane ? room[threadIdx.x - 1] : F::nothing();
}

/// Scans each part. `states` holds the state before each part, or is null. If `only_states` is true, stores the state
/// of each part in `states` and writes no results.
template <class F>
__global__ void __launch_bounds__(kThreads)
    scan_rows(const F f, const Parts p, typename F::State* states, bool only_states) {
    using S = typename F::State;
    __shared__ Values<S> room;
    const uint32_t lanes = p.rows.lanes, lane = threadIdx.x % lanes;
    const int64_t together = kThreads / lanes, chunk = static_cast<int64_t>(lanes) * kItems;
    for (int64_t group = blockIdx.x; group * together < p.rows.count; group += gridDim.x) {
        const int64_t number = group * together + threadIdx.x / lanes, row = number / p.count;
        const int64_t begin = number % p.count * p.each;
        const int64_t end = number >= p.rows.count    ? begin
                            : p.size < begin + p.each ? p.size
                                                      : begin + p.each;
        const int64_t inner = p.rows.inner, first = row / inner * p.size * inner + row % inner;
        S carried = states && !only_states && begin < end ? states[number] : F::nothing();
        for (int64_t from = begin; from < begin + p.each; from += chunk) {
            const int64_t own = from + lane * kItems;
            S sum = F::nothing(), all;
            for (int k = 0; k < kItems && own + k < end; ++k)
                sum = F::join(sum, f.at(first + (own + k) * inner, own + k));
            sum = before_lane<F>(room.x, lane, lanes, sum, all);
            sum = F::join(carried, sum);
            for (int k = 0; !only_states && k < kItems && own + k < end; ++k) {
                const int64_t position = first + (own + k) * inner;
                sum = F::join(sum, f.at(position, own + k));
                f.put(position, sum);
            }
            carried = F::join(carried, all);
        }
        if (only_states && lane == 0 && number < p.rows.count) states[number] = carried;
    }
}

/// Replaces the state of each part by the joined state of all preceding parts of its row.
template <class F>
__global__ void __launch_bounds__(kThreads)
    join_parts(typename F::State* states, int64_t rows, int64_t parts) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; row < rows; row += step) {
        typename F::State carried = F::nothing();
        for (int64_t i = row * parts; i < (row + 1) * parts; ++i) {
            const typename F::State own = states[i];
            states[i] = carried;
            carried = F::join(carried, own);
        }
    }
}

struct RowShape {
    int64_t outer = 1, size = 1, inner = 1;
    RowShape(const View& v, int64_t dim) {
        if (dim < 0) dim += v.ndim;
        for (int d = 0; d < v.ndim; ++d) (d < dim ? outer : d == dim ? size : inner) *= v.sizes[d];
    }
};

template <class F>
void queue_scan(const KernelArgs& args, const F& f, int64_t dim) {
    const RowShape shape(args.out(0), dim);
    const Parts parts(shape.outer, shape.size, shape.inner);
    const cudaStream_t stream = queue_of(args);
    const Grid grid = parts.rows.grid();
    typename F::State* states = nullptr;
    if (parts.count > 1) {
        states = scratch<typename F::State>(args.context, parts.rows.count);
        const int64_t rows = shape.outer * shape.inner;
        launch(&scan_rows<F>, grid, stream, f, parts, states, true);
        launch(&join_parts<F>, Grid{blocks_for(rows), kThreads}, stream, states, rows, parts.count);
    }
    launch(&scan_rows<F>, grid, stream, f, parts, states, false);
}

/// Calls `run` with a value of the type in which elements of a dtype are scanned. Integers are converted to 64 bits,
/// and the results are converted back.
template <class Run>
void by_scan_type(const char* op, DType dtype, bool complex, Run&& run) {
    switch (dtype) {
        case DType::Float16: return run(Half());
        case DType::BFloat16: return run(BFloat16());
        case DType::Float32: return run(float());
        case DType::Float64: return run(double());
        case DType::UInt64: return run(uint64_t());
        case DType::Complex64:
            if (complex) return run(Complex<float>());
            break;
        case DType::Complex128:
            if (complex) return run(Complex<double>());
            break;
        default: return run(int64_t());
    }
    fail(BackendStatus::NotImplemented, "%s is not defined for dtype %s", op, dtype_name(dtype));
}

template <template <class> class F>
BackendStatus accumulated(const char* op, const KernelArgs* args) {
    return guarded([=] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        queue_of(*args);
        // Integers are converted first, because sums of int8 wrap around: `in` has the dtype of the result.
        const Apart in(*args, args->in(0), out.dtype);
        by_scan_type(op, out.dtype, true, [&]<class T>(T) {
            const DenseOut<T> to(args->context, out);
            F<T> f;
            f.out = to.data();
            f.in = dense<T>(args->context, in.view);
            queue_scan(*args, f, args->params[0].as_int());
            to.finish();
        });
    });
}

template <template <class> class F>
BackendStatus extremes(const char* op, const KernelArgs* args) {
    return guarded([=] {
        const View& values = args->out(0);
        if (values.numel == 0) return;
        queue_of(*args);
        by_scan_type(op, values.dtype, false, [&]<class T>(T) {
            if constexpr (!kIsComplex<T>) {
                const DenseOut<T> to(args->context, values);
                const DenseOut<int64_t> indices(args->context, args->out(1));
                F<T> f;
                f.out = to.data();
                f.in = dense<T>(args->context, args->in(0));
                f.indices = indices.data();
                queue_scan(*args, f, args->params[0].as_int());
                to.finish();
                indices.finish();
            }
        });
    });
}

// --- A linear recurrence: y[i] = factors[i] * y[i - 1] + terms[i] ------------------------------------

template <class T>
__global__ void __launch_bounds__(kThreads)
    run_recurrence(const RowShape s, T* out, const T* factors, const T* terms, bool reverse) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; row < s.outer * s.inner;
         row += step) {
        const int64_t first = row / s.inner * s.size * s.inner + row % s.inner;
        int64_t at = first + (reverse ? (s.size - 1) * s.inner : 0);
        ScanState<T> state{};
        for (int64_t i = 0; i < s.size; ++i, at += reverse ? -s.inner : s.inner) {
            if (i > 0) state = state * widened(factors[at + (reverse ? s.inner : 0)]);
            state = state + widened(terms[at]);
            out[at] = narrowed<T>(state);
        }
    }
}

}  // namespace

BackendStatus cumsum(const KernelArgs* args) { return accumulated<Sums>("cumsum", args); }
BackendStatus cumprod(const KernelArgs* args) { return accumulated<Products>("cumprod", args); }
BackendStatus cummax(const KernelArgs* args) { return extremes<Largest>("cummax", args); }
BackendStatus cummin(const KernelArgs* args) { return extremes<Smallest>("cummin", args); }

BackendStatus logcumsumexp(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        queue_of(*args);
        by_scan_type("logcumsumexp", out.dtype, true, [&]<class T>(T) {
            if constexpr (!std::is_integral_v<T>) {
                const DenseOut<T> to(args->context, out);
                LogSums<T> f;
                f.out = to.data();
                f.in = dense<T>(args->context, args->in(0));
                queue_scan(*args, f, args->params[0].as_int());
                to.finish();
            }
        });
    });
}

BackendStatus recurrence(const KernelArgs* args) {
    return guarded([args] {
        const View& out = args->out(0);
        if (out.numel == 0) return;
        const cudaStream_t stream = queue_of(*args);
        const RowShape shape(out, args->params[0].as_int());
        by_scan_type("_recurrence", out.dtype, true, [&]<class T>(T) {
            if constexpr (!std::is_integral_v<T>) {
                const DenseOut<T> to(args->context, out);
                launch(&run_recurrence<T>, Grid{blocks_for(shape.outer * shape.inner), kThreads}, stream,
                       shape, to.data(), dense<T>(args->context, args->in(0)),
                       dense<T>(args->context, args->in(1)), args->params[1].as_bool());
                to.finish();
            }
        });
    });
}

}  // namespace rushlight::cuda
