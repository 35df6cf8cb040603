// The gates of recurrent cells have shape (batch, gates x hidden), and the states have shape (batch, hidden).
#include "cuda/blas.h"
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"
#include "ops/functors/gates.h"

namespace rushlight::cuda {
namespace {

/// Calls f(i, first) for each element i of a state that has `n` elements. Each element of the state has `count` gates.
/// `first` is the index of the first gate, and the others follow at intervals of `hidden`.
template <class F>
__device__ void for_states(int64_t n, int64_t hidden, int64_t count, F&& f) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step)
        f(i, i / hidden * count * hidden + i % hidden);
}

template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    lstm(int64_t n, int64_t hidden, Stored* to, Stored* next, const Stored* gates, const Stored* cell) {
    for_states(n, hidden, 4, [&](int64_t i, int64_t first) {
        const auto gate = [&](int k) { return static_cast<T>(gates[first + k * hidden]); };
        const auto made = functors::lstm_step(gate(0), gate(1), gate(2), gate(3), static_cast<T>(cell[i]));
        to[i] = Stored(made.hidden);
        next[i] = Stored(made.cell);
    });
}

template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    lstm_backward(int64_t n, int64_t hidden, Stored* grad_gates, Stored* grad_old, const Stored* grad_hidden,
                  const Stored* grad_cell, const Stored* gates, const Stored* cell, const Stored* next) {
    for_states(n, hidden, 4, [&](int64_t i, int64_t first) {
        const auto gate = [&](int k) { return static_cast<T>(gates[first + k * hidden]); };
        const auto made = functors::lstm_gradients(
            gate(0), gate(1), gate(2), gate(3), static_cast<T>(cell[i]), static_cast<T>(next[i]),
            static_cast<T>(grad_hidden[i]), static_cast<T>(grad_cell[i]));
        const T found[] = {made.in, made.forget, made.candidate, made.out};
        for (int k = 0; k < 4; ++k) grad_gates[first + k * hidden] = Stored(found[k]);
        grad_old[i] = Stored(made.cell);
    });
}

template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    gru(int64_t n, int64_t hidden, Stored* out, const Stored* from_input, const Stored* from_hidden,
        const Stored* state) {
    for_states(n, hidden, 3, [&](int64_t i, int64_t first) {
        const auto x = [&](int k) { return static_cast<T>(from_input[first + k * hidden]); };
        const auto h = [&](int k) { return static_cast<T>(from_hidden[first + k * hidden]); };
        out[i] = Stored(functors::gru_step(x(0), x(1), x(2), h(0), h(1), h(2), static_cast<T>(state[i])));
    });
}

template <class T, class Stored>
__global__ void __launch_bounds__(kThreads)
    gru_backward(int64_t n, int64_t hidden, Stored* grad_input, Stored* grad_hidden, Stored* grad_state,
                 const Stored* grad, const Stored* from_input, const Stored* from_hidden,
                 const Stored* state) {
    for_states(n, hidden, 3, [&](int64_t i, int64_t first) {
        const auto x = [&](int k) { return static_cast<T>(from_input[first + k * hidden]); };
        const auto h = [&](int k) { return static_cast<T>(from_hidden[first + k * hidden]); };
        const auto made = functors::gru_gradients(x(0), x(1), x(2), h(0), h(1), h(2),
                                                  static_cast<T>(state[i]), static_cast<T>(grad[i]));
        const T of_input[] = {made.reset, made.update, made.x_new},
                of_hidden[] = {made.reset, made.update, made.h_new};
        for (int k = 0; k < 3; ++k) {
            grad_input[first + k * hidden] = Stored(of_input[k]);
            grad_hidden[first + k * hidden] = Stored(of_hidden[k]);
        }
        grad_state[i] = Stored(made.state);
    });
}

/// Enqueues a kernel with one thread for each element of `state`. The kernel receives the outputs and then the inputs,
/// in the order of the schema.
template <class Stored, int outputs, int inputs, class Kernel>
void queue(const KernelArgs& args, Kernel kernel, const View& state) {
    if (state.numel == 0) return;
    const cudaStream_t stream = queue_of(args);
    KernelContext* context = args.context;
    [&]<size_t... o, size_t... i>(std::index_sequence<o...>, std::index_sequence<i...>) {
        const DenseOut<Stored> to[] = {DenseOut<Stored>(context, args.out(o))...};
        launch(kernel, Grid{blocks_for(state.numel), kThreads}, stream, state.numel, state.size(1),
               to[o].data()..., dense<Stored>(context, args.in(i))...);
        for (const auto& one : to) one.finish();
    }(std::make_index_sequence<outputs>(), std::make_index_sequence<inputs>());
}

struct Lstm {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue<Stored, 2, 2>(args, &lstm<Computed<Stored>, Stored>, args.in(1));
    }
};
struct LstmBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue<Stored, 2, 5>(args, &lstm_backward<Computed<Stored>, Stored>, args.in(3));
    }
};
struct Gru {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue<Stored, 1, 3>(args, &gru<Computed<Stored>, Stored>, args.in(2));
    }
};
struct GruBackward {
    template <class Stored>
    static void run(const KernelArgs& args) {
        queue<Stored, 3, 4>(args, &gru_backward<Computed<Stored>, Stored>, args.in(3));
    }
};

// --- A layer over a whole sequence ------------------------------------------------------------------

/// A layer of an LSTM: T steps of N states of H elements. Each step needs a product of the states and the weight, which
/// the library computes.
template <class T>
struct Layer {
    KernelContext* context;
    cudaStream_t stream;
    void* workspace;
    int64_t steps, batch, hidden;
    bool backwards;

    Layer(const KernelArgs& args, const View& output, bool backwards)
        : context(args.context),
          stream(queue_of(args)),
          workspace(scratch<char>(args.context, kWorkspaceBytes)),
          steps(output.sizes[0]),
          batch(output.sizes[1]),
          hidden(output.sizes[2]),
          backwards(backwards) {}

    int64_t state() const { return batch * hidden; }
    /// Returns the position in the sequence that step k processes.
    int64_t at(int64_t k) const { return backwards ? steps - 1 - k : k; }
    const T* before(int64_t k, const T* first, const T* all) const {
        return k == 0 ? first : all + at(k - 1) * state();
    }
    /// Enqueues the computation out = a @ b + beta * out, where a is (m, k), b is (k, n) and out is (m, n). `out` is
    /// row-major. `a` is row-major too, unless `a_transposed` is true: then the transpose of `a` is row-major. The same
    /// holds for `b`.
    void multiply(T* out, int64_t m, int64_t n, int64_t k, const T* a, bool a_transposed, const T* b,
                  bool b_transposed, double beta) const {
        const auto matrix = [](const T* data, int64_t rows, int64_t columns, bool transposed) {
            return transposed ? Matrix{data, 0, 1, rows} : Matrix{data, 0, columns, 1};
        };
        Product p{};
        p.dtype = p.result = DTypeOf<T>::value;
        p.count = 1;
        p.m = m;
        p.n = n;
        p.k = k;
        p.a = matrix(a, m, k, a_transposed);
        p.b = matrix(b, k, n, b_transposed);
        p.out = {out, 0, n, 1};
        p.alpha = 1;
        p.beta = beta;
        p.tf32 = permits(Setting::Tf32Recurrent);
        cuda::multiply(context->call->device, stream, workspace, kWorkspaceBytes, p);
    }
};

struct LstmLayer {
    template <class T>
    static void run(const KernelArgs& args) {
        const View &output = args.out(0), &sums_out = args.out(2), &gates = args.in(0);
        if (output.numel == 0) return;
        const Layer<T> l(args, output, args.params[0].as_bool());
        const DenseOut<T> to(l.context, output), cells(l.context, args.out(1)), sums(l.context, sums_out);
        const RowMajor steps(sums_out.sizes, sums_out.ndim);
        queue_copy(View{sums.data(), sums_out.sizes, steps.strides, sums_out.numel, sums_out.ndim,
                        DTypeOf<T>::value, 1},
                   gates, l.context);
        const T *hidden = dense<T>(l.context, args.in(1)), *cell = dense<T>(l.context, args.in(2)),
                *weight = dense<T>(l.context, args.in(3));
        for (int64_t k = 0; k < l.steps; ++k) {
            const int64_t t = l.at(k);
            T* const own = sums.data() + t * 4 * l.state();
            l.multiply(own, l.batch, 4 * l.hidden, l.hidden, l.before(k, hidden, to.data()), false, weight,
                       true, 1);
            launch(&lstm<T, T>, Grid{blocks_for(l.state()), kThreads}, l.stream, l.state(), l.hidden,
                   to.data() + t * l.state(), cells.data() + t * l.state(), own,
                   l.before(k, cell, cells.data()));
        }
        for (const DenseOut<T>* made : {&to, &cells, &sums}) made->finish();
    }
};

template <class T>
struct AddGradients {
    T *hidden, *cell;  // gradients from the next step
    const T *grad_output, *grad_cells;
    __device__ void operator()(int64_t i) const {
        hidden[i] += grad_output[i];
        cell[i] += grad_cells[i];
    }
};
template <class T>
struct AddTo {
    T* to;
    const T* from;
    __device__ void operator()(int64_t i) const { to[i] += from[i]; }
};

struct LstmLayerBackward {
    template <class T>
    static void run(const KernelArgs& args) {
        KernelContext* const context = args.context;
        const View& output = args.in(6);
        queue_of(args);
        if (output.numel == 0) {
            for (int i = 0; i < 4; ++i)
                if (args.out(i).defined()) queue_zeros(args.out(i), context);
            return;
        }
        const Layer<T> l(args, output, args.params[0].as_bool());
        const int64_t state = l.state(), h = l.hidden;
        const DenseOut<T> gates(context, args.out(0)), to_hidden(context, args.out(1)),
            to_cell(context, args.out(2)), to_weight(context, args.out(3));
        const auto in = [&](int i) { return dense<T>(context, args.in(i)); };
        const T *grad_output = in(0), *grad_cells = in(1), *grad_sums = in(2), *first_hidden = in(3),
                *first_cell = in(4), *weight = in(5), *states = in(6), *cells = in(7), *sums = in(8);
        for (const auto& [to, of] :
             {std::pair(&to_hidden, &args.out(1)), std::pair(&to_cell, &args.out(2))}) {
            const RowMajor strides(of->sizes, of->ndim);
            queue_zeros(
                View{to->data(), of->sizes, strides.strides, of->numel, of->ndim, DTypeOf<T>::value, 1},
                context);
        }
        for (int64_t k = l.steps - 1; k >= 0; --k) {
            const int64_t t = l.at(k);
            T* const own = gates.data() + t * 4 * state;
            queue_for_each(AddGradients<T>{to_hidden.data(), to_cell.data(), grad_output + t * state,
                                           grad_cells + t * state},
                           state, l.stream);
            launch(&lstm_backward<T, T>, Grid{blocks_for(state), kThreads}, l.stream, state, h, own,
                   to_cell.data(), to_hidden.data(), to_cell.data(), sums + t * 4 * state,
                   l.before(k, first_cell, cells), cells + t * state);
            queue_for_each(AddTo<T>{own, grad_sums + t * 4 * state}, 4 * state, l.stream);
            l.multiply(to_hidden.data(), l.batch, h, 4 * h, own, false, weight, false, 0);
        }
        // The weight's gradient is the sum over all steps of the gates' gradients times the states before the steps.
        const int64_t later = l.backwards ? 0 : 1;
        l.multiply(to_weight.data(), 4 * h, h, l.batch, gates.data() + l.at(0) * 4 * state, true,
                   first_hidden, false, 0);
        if (l.steps > 1)
            l.multiply(to_weight.data(), 4 * h, h, (l.steps - 1) * l.batch, gates.data() + later * 4 * state,
                       true, states + (1 - later) * state, false, 1);
        for (const DenseOut<T>* made : {&gates, &to_hidden, &to_cell, &to_weight}) made->finish();
    }
};

/// Calls `F::run<T>(args)` for float32 and float64.
template <class F>
BackendStatus by_wide_dtype(const KernelArgs* args, DType dtype) {
    return guarded([=] {
        if (dtype == DType::Float32) return F::template run<float>(*args);
        if (dtype == DType::Float64) return F::template run<double>(*args);
        fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(dtype));
    });
}

}  // namespace

BackendStatus lstm_layer(const KernelArgs* args) { return by_wide_dtype<LstmLayer>(args, args->in(0).dtype); }
BackendStatus lstm_layer_backward(const KernelArgs* args) {
    return by_wide_dtype<LstmLayerBackward>(args, args->in(0).dtype);
}

BackendStatus lstm_gates(const KernelArgs* args) { return by_floating_dtype<Lstm>(args, args->out(0).dtype); }
BackendStatus lstm_gates_backward(const KernelArgs* args) {
    return by_floating_dtype<LstmBackward>(args, args->out(0).dtype);
}
BackendStatus gru_gates(const KernelArgs* args) { return by_floating_dtype<Gru>(args, args->out(0).dtype); }
BackendStatus gru_gates_backward(const KernelArgs* args) {
    return by_floating_dtype<GruBackward>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
