// Whole optimizer steps over lists of tensors, as defined in cpu/optimizer.h. A launch processes several parameters, with a
// row of blocks for each, so that many small parameters need few launches.
#include "cuda/kernels.h"
#include "cuda/kernels/pointwise_loop.cuh"
#include "cuda/pointwise.h"
#include "cuda/queue.h"
#include "ops/functors/optimizer.h"

namespace rushlight::cuda {
namespace {

constexpr int kPerLaunch = 32, kMostOperands = 5, kMostNumbers = 3;
constexpr int kGradient = 1;  // the only operand that is not written

/// The memory of some parameters, their gradients and their state. All tensors of a parameter have their elements in the
/// same order.
struct Batch {
    void* data[kPerLaunch][kMostOperands];
    // Such as the number of steps; null if the optimizer has fewer numbers.
    void* numbers[kPerLaunch][kMostNumbers];
    int64_t numel[kPerLaunch];
    DType number_dtypes[kPerLaunch][kMostNumbers];

    __device__ double number(int row, int k) const {
        const void* at = numbers[row][k];
        return at ? read<double>(static_cast<const char*>(at), number_dtypes[row][k]) : 0;
    }
};

/// Reads a float32 or float64 number from the device's memory. If there is no such memory, returns a given default.
struct Number {
    const void* data;
    DType dtype;
    explicit Number(const View& v) : data(v.defined() ? v.data : nullptr), dtype(v.dtype) {}
    __device__ double value(double otherwise) const {
        return data ? read<double>(static_cast<const char*>(data), dtype) : otherwise;
    }
};

struct Scaling {
    Number grad_scale, found_inf;
    __device__ bool is_off() const { return found_inf.value(0) != 0; }
};

struct Sgd {
    double weight_decay, momentum, lr, dampening;
    bool nesterov, maximize, first;

    template <class T, class M>
    __device__ void run(const Batch& batch, int row, double scale, int64_t begin, int64_t by) const {
        void* const* data = batch.data[row];
        const int64_t numel = batch.numel[row];
        const T* grad = static_cast<const T*>(data[1]);
        T *param = static_cast<T*>(data[0]), *buffer = static_cast<T*>(data[2]);
        const M inverse_scale = static_cast<M>(1 / scale), damped = static_cast<M>(1 - dampening);
        for (int64_t i = begin; i < numel; i += by) {
            const M p = static_cast<M>(param[i]);
            M g = static_cast<M>(grad[i]);
            if (scale != 1) g *= inverse_scale;
            if (maximize) g = -g;
            if (weight_decay != 0) g += p * static_cast<M>(weight_decay);
            if (momentum != 0) {
                const M b = first ? g : static_cast<M>(momentum) * static_cast<M>(buffer[i]) + damped * g;
                buffer[i] = T(b);
                g = nesterov ? g + static_cast<M>(momentum) * b : b;
            }
            param[i] = T(p - static_cast<M>(lr) * g);
        }
    }
};

struct Adam {
    double lr, beta1, beta2, weight_decay, eps;
    bool amsgrad, maximize, decoupled;

    template <class T, class M>
    __device__ void run(const Batch& batch, int row, double scale, int64_t begin, int64_t by) const {
        void* const* data = batch.data[row];
        const int64_t numel = batch.numel[row];
        const double step = batch.number(row, 0);
        const T* grad = static_cast<const T*>(data[1]);
        T *param = static_cast<T*>(data[0]), *first = static_cast<T*>(data[2]),
          *second = static_cast<T*>(data[3]), *largest = static_cast<T*>(data[4]);
        const M inverse_scale = static_cast<M>(1 / scale), kept = static_cast<M>(1 - lr * weight_decay);
        const M new1 = static_cast<M>(1 - beta1), old2 = static_cast<M>(beta2),
                new2 = static_cast<M>(1 - beta2);
        const M size = static_cast<M>(lr / (1 - std::pow(beta1, step)));
        const M inverse_root = static_cast<M>(1 / std::sqrt(1 - std::pow(beta2, step)));
        for (int64_t i = begin; i < numel; i += by) {
            M p = static_cast<M>(param[i]), g = static_cast<M>(grad[i]);
            if (scale != 1) g *= inverse_scale;
            if (maximize) g = -g;
            if (decoupled) p *= kept;
            else if (weight_decay != 0) g += p * static_cast<M>(weight_decay);
            M m = static_cast<M>(first[i]), v = static_cast<M>(second[i]);
            m += new1 * (g - m);
            v = old2 * v + new2 * g * g;
            first[i] = T(m);
            second[i] = T(v);
            if (amsgrad) {
                const M before = static_cast<M>(largest[i]);
                v = before > v ? before : v;
                largest[i] = T(v);
            }
            param[i] = T(p - size * m / (std::sqrt(v) * inverse_root + static_cast<M>(eps)));
        }
    }
};

/// A step of an optimizer that counts its own steps: Note [Steps that count]. All blocks that process a parameter read
/// the parameter's step numbers, and afterwards another kernel advances these numbers.
template <class Kind>
struct Counted {
    Kind kind;

    __device__ typename Kind::Update begin(const Batch& batch, int row,
                                           steps::Number (&numbers)[Kind::kNumbers]) const {
        for (int k = 0; k < Kind::kNumbers; ++k)
            numbers[k] = {batch.number(row, k), batch.number_dtypes[row][k] != DType::Float64};
        return kind.begin(numbers);
    }
    template <class T, class M>
    __device__ void run(const Batch& batch, int row, double, int64_t begin_at, int64_t by) const {
        steps::Number numbers[Kind::kNumbers];
        const auto update = begin(batch, row, numbers);
        void* const* data = batch.data[row];
        T* param = static_cast<T*>(data[0]);
        const T* grad = static_cast<const T*>(data[kGradient]);
        for (int64_t i = begin_at; i < batch.numel[row]; i += by) {
            M p = static_cast<M>(param[i]);
            M state[Kind::kStates];
            for (int k = 0; k < Kind::kStates; ++k)
                state[k] = static_cast<M>(static_cast<const T*>(data[2 + k])[i]);
            update(p, kind.gradient(p, static_cast<M>(grad[i])), state);
            for (int k = 0; k < Kind::kStates; ++k) static_cast<T*>(data[2 + k])[i] = T(state[k]);
            param[i] = T(p);
        }
    }
};

template <class Kind>
__global__ void count_steps(const Counted<Kind> step, const Batch batch) {
    const int row = static_cast<int>(blockIdx.y);
    steps::Number numbers[Kind::kNumbers];
    step.begin(batch, row, numbers);
    for (int k = 0; k < Kind::kNumbers; ++k) {
        void* at = batch.numbers[row][k];
        if (numbers[k].single) *static_cast<float*>(at) = static_cast<float>(numbers[k].value);
        else *static_cast<double*>(at) = numbers[k].value;
    }
}

template <class T, class Step>
__global__ void __launch_bounds__(kThreads)
    take_step(const Step step, const Batch batch, const Scaling scaling) {
    if (scaling.is_off()) return;
    step.template run<T, Computed<T>>(batch, static_cast<int>(blockIdx.y), scaling.grad_scale.value(1),
                                      static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x,
                                      static_cast<int64_t>(gridDim.x) * kThreads);
}

/// The lists of an operator. Each list has one tensor for each parameter, or is null.
struct Lists {
    const View* list[kMostOperands];
    const View* numbers[kMostNumbers];
    int64_t count;

    /// Writes the addresses and dtypes of the numbers of parameter i to a row of a batch.
    void set_numbers(Batch& batch, int row, int64_t i) const {
        for (int k = 0; k < kMostNumbers; ++k) {
            batch.numbers[row][k] = numbers[k] ? numbers[k][i].data : nullptr;
            batch.number_dtypes[row][k] = numbers[k] ? numbers[k][i].dtype : DType::Float32;
        }
    }
};

template <class Step>
void queue_count(const Step&, const Batch&, int, cudaStream_t) {}  // the caller has counted the step
template <class Kind>
void queue_count(const Counted<Kind>& step, const Batch& batch, int rows, cudaStream_t stream) {
    launch(&count_steps<Kind>, {1, 1, static_cast<unsigned>(rows)}, stream, step, batch);
}

template <class Step>
void queue_batch(DType dtype, const Step& step, const Batch& batch, int rows, const Scaling& scaling,
                 cudaStream_t stream) {
    int64_t most = 0;
    for (int i = 0; i < rows; ++i) most = batch.numel[i] > most ? batch.numel[i] : most;
    if (most == 0) return;
    const Grid grid{blocks_for(most), kThreads, static_cast<unsigned>(rows)};
    switch (dtype) {
        case DType::Float16: return launch(&take_step<Half, Step>, grid, stream, step, batch, scaling);
        case DType::BFloat16: return launch(&take_step<BFloat16, Step>, grid, stream, step, batch, scaling);
        case DType::Float32: return launch(&take_step<float, Step>, grid, stream, step, batch, scaling);
        case DType::Float64: return launch(&take_step<double, Step>, grid, stream, step, batch, scaling);
        default: fail(BackendStatus::NotImplemented, "not defined for dtype %s", dtype_name(dtype));
    }
}

template <class Step>
void queue_steps(const KernelArgs& args, const Step& step, const Lists& lists, const Scaling& scaling) {
    const cudaStream_t stream = queue_of(args);
    Batch batch = {};
    int rows = 0;
    DType dtype = DType::Float32;
    const auto flush = [&] {
        if (rows) {
            queue_batch(dtype, step, batch, rows, scaling, stream);
            queue_count(step, batch, rows, stream);
        }
        rows = 0;
    };
    for (int64_t i = 0; i < lists.count; ++i) {
        const View& param = lists.list[0][i];
        if (rows == kPerLaunch || (rows && param.dtype != dtype)) flush();
        dtype = param.dtype;
        batch.numel[rows] = param.numel;
        lists.set_numbers(batch, rows, i);
        bool contiguous = true;  // contiguous tensors need no copy
        for (int k = 0; k < kMostOperands; ++k) {
            batch.data[rows][k] = nullptr;
            if (!lists.list[k]) continue;
            const View& v = lists.list[k][i];
            if (v.dtype != param.dtype || v.numel != param.numel)
                fail(BackendStatus::Runtime,
                     "parameter %lld has dtype %s and %lld elements, but its gradient or state has dtype %s "
                     "and %lld elements",
                     (long long)i, dtype_name(param.dtype), (long long)param.numel, dtype_name(v.dtype),
                     (long long)v.numel);
            batch.data[rows][k] = v.data;
            contiguous = contiguous && v.contiguous;
        }
        ++rows;
        if (contiguous) continue;
        // Other parameters are processed as row-major copies, in a separate launch.
        --rows;
        flush();
        rows = 1;
        batch.numel[0] = param.numel;
        lists.set_numbers(batch, 0, i);
        View copies[kMostOperands];
        const RowMajor dense(param.sizes, param.ndim);
        for (int k = 0; k < kMostOperands; ++k) {
            batch.data[0][k] = nullptr;
            if (!lists.list[k]) continue;
            const View& v = lists.list[k][i];
            batch.data[0][k] = scratch<char>(args.context, v.numel * static_cast<int64_t>(itemsize(v.dtype)));
            copies[k] = View{batch.data[0][k], v.sizes, dense.strides, v.numel, v.ndim, v.dtype, 1};
            queue_copy(copies[k], v, args.context);
        }
        flush();
        for (int k = 0; k < kMostOperands; ++k)
            if (lists.list[k] && k != kGradient) queue_copy(lists.list[k][i], copies[k], args.context);
    }
    flush();
}

/// Iterates over the lists of tensors among the inputs. The lengths of the lists are the first parameters.
struct Inputs {
    const KernelArgs& args;
    int next_list = 0;
    const View* at;
    int64_t length = 0;

    explicit Inputs(const KernelArgs& a) : args(a), at(&a.in(0)) {}
    const View* list() {
        length = args.params[next_list++].as_int();
        const View* begin = length ? at : nullptr;
        at += length;
        return begin;
    }
    const View& one() { return *at++; }
    const Param& number(int i) const { return args.params[next_list + i]; }
};

BackendStatus adam(const KernelArgs* args, bool decoupled) {
    return guarded([=] {
        Inputs in(*args);
        Lists lists = {};
        for (int k = 0; k < 5; ++k) {
            lists.list[k] = in.list();
            if (k == 0) lists.count = in.length;
        }
        lists.numbers[0] = in.list();
        const View& grad_scale = in.one();
        const Scaling scaling{Number(grad_scale), Number(in.one())};
        const bool amsgrad = in.number(5).as_bool();
        if (!amsgrad) lists.list[4] = nullptr;
        queue_steps(*args,
                    Adam{in.number(0).as_float(), in.number(1).as_float(), in.number(2).as_float(),
                         in.number(3).as_float(), in.number(4).as_float(), amsgrad, in.number(6).as_bool(),
                         decoupled},
                    lists, scaling);
    });
}

/// The arguments of an optimizer that counts its own steps: `kLists` lists, followed by the settings. The first two
/// lists contain the parameters and the gradients, and the last lists contain the numbers of the optimizer, such as
/// step counts.
template <int kLists>
struct Arguments {
    const KernelArgs& args;
    const View* list[kLists];
    int64_t count = 0;

    explicit Arguments(const KernelArgs& a) : args(a) {
        Inputs in(a);
        for (int k = 0; k < kLists; ++k) {
            list[k] = in.list();
            if (k == 0) count = in.length;
        }
    }
    double number(int i) const { return args.params[kLists + i].as_float(); }
    bool flag(int i) const { return args.params[kLists + i].as_bool(); }

    /// Enqueues the step. `states` holds the indices of those lists that contain states.
    template <class Kind>
    void queue(const Kind& kind, const int (&states)[Kind::kStates]) const {
        Lists lists = {};
        lists.count = count;
        lists.list[0] = list[0];
        lists.list[1] = list[1];
        for (int k = 0; k < Kind::kStates; ++k) lists.list[2 + k] = list[states[k]];
        for (int k = 0; k < Kind::kNumbers; ++k) lists.numbers[k] = list[kLists - Kind::kNumbers + k];
        const View none{nullptr, nullptr, nullptr, 0, -1, DType::Float32, 0};
        queue_steps(args, Counted<Kind>{kind}, lists, {Number(none), Number(none)});
    }
};

}  // namespace

BackendStatus fused_sgd(const KernelArgs* args) {
    return guarded([args] {
        Inputs in(*args);
        Lists lists = {};
        for (int k = 0; k < 3; ++k) {
            lists.list[k] = in.list();
            if (k == 0) lists.count = in.length;
        }
        const View& grad_scale = in.one();
        const Scaling scaling{Number(grad_scale), Number(in.one())};
        const Sgd step{in.number(0).as_float(), in.number(1).as_float(), in.number(2).as_float(),
                       in.number(3).as_float(), in.number(4).as_bool(),  in.number(5).as_bool(),
                       in.number(6).as_bool()};
        if (step.momentum == 0) lists.list[2] = nullptr;
        queue_steps(*args, step, lists, scaling);
    });
}
BackendStatus fused_adam(const KernelArgs* args) { return adam(args, false); }
BackendStatus fused_adamw(const KernelArgs* args) { return adam(args, true); }

BackendStatus rmsprop_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<6> a(*args);
        const double lr = a.number(0), alpha = a.number(1), eps = a.number(2), momentum = a.number(4);
        const steps::Gradient gradient(a.flag(6), a.number(3));
        if (a.flag(5) && momentum > 0)
            a.queue(steps::Rmsprop<true, true>{gradient, lr, alpha, eps, momentum}, {2, 3, 4});
        else if (a.flag(5)) a.queue(steps::Rmsprop<true, false>{gradient, lr, alpha, eps, momentum}, {2, 3});
        else if (momentum > 0)
            a.queue(steps::Rmsprop<false, true>{gradient, lr, alpha, eps, momentum}, {2, 4});
        else a.queue(steps::Rmsprop<false, false>{gradient, lr, alpha, eps, momentum}, {2});
    });
}
BackendStatus adagrad_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<4> a(*args);
        a.queue(steps::Adagrad{{a.flag(4), a.number(3)}, a.number(0), a.number(1), a.number(2)}, {2});
    });
}
BackendStatus adadelta_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<5> a(*args);
        a.queue(steps::Adadelta{{a.flag(4), a.number(3)}, a.number(0), a.number(1), a.number(2)}, {2, 3});
    });
}
BackendStatus adamax_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<5> a(*args);
        a.queue(steps::Adamax{{a.flag(5), a.number(4)}, a.number(0), a.number(1), a.number(2), a.number(3)},
                {2, 3});
    });
}
BackendStatus nadam_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<6> a(*args);
        const double decay = a.number(4);
        const bool decoupled = a.flag(6);
        a.queue(steps::Nadam{{a.flag(7), decoupled ? 0 : decay},
                             a.number(0),
                             a.number(1),
                             a.number(2),
                             a.number(3),
                             decoupled ? decay : 0,
                             a.number(5)},
                {2, 3});
    });
}
BackendStatus radam_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<5> a(*args);
        const double decay = a.number(4);
        const bool decoupled = a.flag(5);
        a.queue(steps::Radam{{a.flag(6), decoupled ? 0 : decay},
                             a.number(0),
                             a.number(1),
                             a.number(2),
                             a.number(3),
                             decoupled ? decay : 0},
                {2, 3});
    });
}
BackendStatus rprop_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<5> a(*args);
        a.queue(steps::Rprop{{a.flag(4), 0}, a.number(0), a.number(1), a.number(2), a.number(3)}, {2, 3});
    });
}
BackendStatus asgd_step(const KernelArgs* args) {
    return guarded([args] {
        const Arguments<6> a(*args);
        a.queue(steps::Asgd{{a.flag(5), a.number(4)}, a.number(0), a.number(1), a.number(2), a.number(3)},
                {2});
    });
}

}  // namespace rushlight::cuda
