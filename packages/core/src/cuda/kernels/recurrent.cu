// The gates of recurrent cells have shape (batch, gates x hidden), and the states have shape (batch, hidden).
#include "cuda/kernels.h"
#include "cuda/kernels/rows.cuh"
#include "ops/functors/gates.h"

namespace rushlight::cuda {
namespace {

/// Calls f(index of the state's element, index of the first gate in its row, position in the row), for `count` gates per
/// state.
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

/// Queues a kernel over the elements of `state`, with outputs and inputs in the order of the schema.
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

}  // namespace

BackendStatus lstm_gates(const KernelArgs* args) { return by_floating_dtype<Lstm>(args, args->out(0).dtype); }
BackendStatus lstm_gates_backward(const KernelArgs* args) {
    return by_floating_dtype<LstmBackward>(args, args->out(0).dtype);
}
BackendStatus gru_gates(const KernelArgs* args) { return by_floating_dtype<Gru>(args, args->out(0).dtype); }
BackendStatus gru_gates_backward(const KernelArgs* args) {
    return by_floating_dtype<GruBackward>(args, args->out(0).dtype);
}

}  // namespace rushlight::cuda
