#include "cpu/optimizer_kernels.h"

#include <type_traits>
#include <utility>

#include "rushlight/half.h"

namespace rushlight::cpu::RUSHLIGHT_CPU {
namespace {

template <class T> struct Math {
    using type = float;
};
template <> struct Math<double> {
    using type = double;
};

// Note [Loading ahead]
// A step reads three to five arrays in parallel and writes all but one of them. If they are larger than the caches,
// its speed is limited by the arrival of cache lines from memory. If each line is prefetched six lines before it is
// needed, a step takes 0.94 to 0.96 of the time without prefetching for Adam, and 0.96 to 0.99 for SGD with momentum
// (Zen 3, AVX2, ResNet-50's parameters). If a cache holds the arrays, it takes 1.1 of the time. One line of each array
// is prefetched at a time. Bursts of two or more lines of each array are slower than no prefetch, and so are streaming
// stores, because the lines that are written have just been read.
constexpr int64_t kLineBytes = 64, kLinesAhead = 6;

/// Calls update(i) for i in [begin, end). Each vectorised loop covers one cache line of the arrays. If `ahead` is true,
/// later lines are prefetched. Arrays of half types are not prefetched, because converting a line takes longer than
/// loading it.
template <class T, class Update, class... Arrays>
[[gnu::always_inline]] inline void each_element(bool ahead, int64_t begin, int64_t end, Update&& update,
                                                const Arrays*... arrays) {
    constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(T));
    const auto update_line = [&](int64_t i) __attribute__((always_inline)) {
#pragma omp simd
        for (int64_t k = 0; k < kLine; ++k) update(i + k);
    };
    int64_t i = begin;
    if constexpr (std::is_floating_point_v<T>) {
        for (; ahead && i + (kLinesAhead + 1) * kLine <= end; i += kLine) {
            (__builtin_prefetch(arrays + i + kLinesAhead * kLine), ...);
            update_line(i);
        }
    }
    for (; i + kLine <= end; i += kLine) update_line(i);
    for (; i < end; ++i) {
        asm volatile("");  // prevents a separate vector loop
        update(i);
    }
}

using steps::fused;
using steps::root;

// The options of a step are template arguments of the loops, so that the compiler can vectorise the loops.
template <class T, bool kMomentum, bool kFirst, bool kNesterov, bool kScaled, bool kDecays>
void sgd_loop(const SgdStep& s, int64_t begin, int64_t end) {
    using M = typename Math<T>::type;
    T* __restrict param = static_cast<T*>(s.param);
    const T* __restrict grad = static_cast<const T*>(s.grad);
    T* __restrict buffer = static_cast<T*>(s.momentum_buffer);
    const M sign = s.maximize ? M(-1) : M(1), inverse_scale = static_cast<M>(1 / s.grad_scale);
    const M decay = static_cast<M>(s.weight_decay), momentum = static_cast<M>(s.momentum),
            lr = static_cast<M>(s.lr);
    const M damped = static_cast<M>(1 - s.dampening);
    const auto update = [&](int64_t i) __attribute__((always_inline)) {
        const M p = static_cast<M>(param[i]);
        M g = static_cast<M>(grad[i]);
        if constexpr (kScaled) g *= inverse_scale;
        g = kDecays ? fused(g, sign, p * decay) : g * sign;
        if constexpr (kMomentum) {
            M b = g;
            if constexpr (!kFirst) b = fused(momentum, static_cast<M>(buffer[i]), damped * g);
            buffer[i] = T(b);
            if constexpr (kNesterov) {
                g = fused(momentum, b, g);
            } else {
                g = b;
            }
        }
        param[i] = T(fused(-lr, g, p));
    };
    if constexpr (kMomentum) {
        each_element<T>(s.larger_than_caches, begin, end, update, param, grad, buffer);
    } else {
        each_element<T>(s.larger_than_caches, begin, end, update, param, grad);
    }
}

// Calls f<kScaled, kDecays>(). Without weight decay no term is added, because an infinite parameter times 0 would
// be NaN.
template <class Step, class F>
void with_switches(const Step& s, bool decays, F&& f) {
    if (s.grad_scale == 1) {
        decays ? f.template operator()<false, true>() : f.template operator()<false, false>();
    } else {
        decays ? f.template operator()<true, true>() : f.template operator()<true, false>();
    }
}

template <class T>
void sgd_of(const SgdStep& s, int64_t begin, int64_t end) {
    with_switches(s, s.weight_decay != 0, [&]<bool kScaled, bool kDecays>() {
        if (s.momentum_buffer == nullptr)
            return sgd_loop<T, false, false, false, kScaled, kDecays>(s, begin, end);
        if (s.is_first_step) {
            return s.nesterov ? sgd_loop<T, true, true, true, kScaled, kDecays>(s, begin, end)
                              : sgd_loop<T, true, true, false, kScaled, kDecays>(s, begin, end);
        }
        return s.nesterov ? sgd_loop<T, true, false, true, kScaled, kDecays>(s, begin, end)
                          : sgd_loop<T, true, false, false, kScaled, kDecays>(s, begin, end);
    });
}

template <class T, bool kAmsgrad, bool kDecoupled, bool kScaled, bool kDecays>
void adam_loop(const AdamStep& s, int64_t begin, int64_t end) {
    using M = typename Math<T>::type;
    T* __restrict param = static_cast<T*>(s.param);
    const T* __restrict grad = static_cast<const T*>(s.grad);
    T* __restrict first = static_cast<T*>(s.exp_avg);
    T* __restrict second = static_cast<T*>(s.exp_avg_sq);
    T* __restrict largest = static_cast<T*>(s.max_exp_avg_sq);
    const double correction1 = 1 - __builtin_pow(s.beta1, s.step),
                 correction2 = 1 - __builtin_pow(s.beta2, s.step);
    const M sign = s.maximize ? M(-1) : M(1), inverse_scale = static_cast<M>(1 / s.grad_scale);
    const M decay = static_cast<M>(s.weight_decay), kept = static_cast<M>(1 - s.lr * s.weight_decay);
    const M new1 = static_cast<M>(1 - s.beta1), beta2 = static_cast<M>(s.beta2),
            new2 = static_cast<M>(1 - s.beta2);
    const M size = static_cast<M>(s.lr / correction1), eps = static_cast<M>(s.eps);
    const M inverse_root = static_cast<M>(1 / __builtin_sqrt(correction2));
    const auto update = [&](int64_t i) __attribute__((always_inline)) {
        const M p = static_cast<M>(param[i]);
        M g = static_cast<M>(grad[i]);
        if constexpr (kScaled) g *= inverse_scale;
        g = kDecays ? fused(g, sign, p * decay) : g * sign;
        M m = static_cast<M>(first[i]), v = static_cast<M>(second[i]);
        m = fused(new1, g - m, m);
        v = fused(beta2, v, new2 * g * g);
        first[i] = T(m);
        second[i] = T(v);
        if constexpr (kAmsgrad) {
            const M before = static_cast<M>(largest[i]);
            v = before > v ? before : v;
            largest[i] = T(v);
        }
        const M change = size * m / fused(root(v), inverse_root, eps);
        param[i] = T(kDecoupled ? fused(kept, p, -change) : p - change);
    };
    if constexpr (kAmsgrad) {
        each_element<T>(s.larger_than_caches, begin, end, update, param, grad, first, second, largest);
    } else {
        each_element<T>(s.larger_than_caches, begin, end, update, param, grad, first, second);
    }
}

template <class T>
void adam_of(const AdamStep& s, int64_t begin, int64_t end) {
    with_switches(s, s.weight_decay != 0 && !s.decoupled, [&]<bool kScaled, bool kDecays>() {
        if (s.max_exp_avg_sq != nullptr) {
            return s.decoupled ? adam_loop<T, true, true, kScaled, false>(s, begin, end)
                               : adam_loop<T, true, false, kScaled, kDecays>(s, begin, end);
        }
        return s.decoupled ? adam_loop<T, false, true, kScaled, false>(s, begin, end)
                           : adam_loop<T, false, false, kScaled, kDecays>(s, begin, end);
    });
}

void sgd(DType dtype, const SgdStep& s, int64_t begin, int64_t end) {
    switch (dtype) {
        case DType::Float64: return sgd_of<double>(s, begin, end);
        case DType::Float16: return sgd_of<Half>(s, begin, end);
        case DType::BFloat16: return sgd_of<BFloat16>(s, begin, end);
        default: return sgd_of<float>(s, begin, end);
    }
}

void adam(DType dtype, const AdamStep& s, int64_t begin, int64_t end) {
    switch (dtype) {
        case DType::Float64: return adam_of<double>(s, begin, end);
        case DType::Float16: return adam_of<Half>(s, begin, end);
        case DType::BFloat16: return adam_of<BFloat16>(s, begin, end);
        default: return adam_of<float>(s, begin, end);
    }
}

// Steps of the optimizers that ops/functors/optimizer.h defines.
template <class T, class Update, class... State>
void step_loop(const StepArrays& a, const steps::Gradient& given_gradient, const Update& given_update,
               int64_t begin, int64_t end, State* __restrict... state) {
    using M = typename Math<T>::type;
    // Local copies, which stores to the arrays cannot change.
    const steps::Gradient gradient = given_gradient;
    const Update update = given_update;
    T* __restrict param = static_cast<T*>(a.param);
    const T* __restrict grad = static_cast<const T*>(a.grad);
    each_element<T>(
        a.larger_than_caches, begin, end,
        [&](int64_t i) __attribute__((always_inline)) {
            M p = static_cast<M>(param[i]);
            M own[] = {static_cast<M>(state[i])...};
            update(p, gradient(p, static_cast<M>(grad[i])), own);
            int k = 0;
            ((state[i] = T(own[k++])), ...);
            param[i] = T(p);
        },
        param, grad, state...);
}

template <class T, class Update, size_t... k>
void step_of(const StepArrays& a, const steps::Gradient& gradient, const Update& update, int64_t begin,
             int64_t end, std::index_sequence<k...>) {
    step_loop<T>(a, gradient, update, begin, end, static_cast<T*>(a.state[k])...);
}

template <class Kind>
void step(DType dtype, const StepArrays& a, const steps::Gradient& gradient,
          const typename Kind::Update& update, int64_t begin, int64_t end) {
    constexpr auto states = std::make_index_sequence<Kind::kStates>();
    switch (dtype) {
        case DType::Float64: return step_of<double>(a, gradient, update, begin, end, states);
        case DType::Float16: return step_of<Half>(a, gradient, update, begin, end, states);
        case DType::BFloat16: return step_of<BFloat16>(a, gradient, update, begin, end, states);
        default: return step_of<float>(a, gradient, update, begin, end, states);
    }
}

template <class... Kind>
constexpr StepKernels<steps::KindList<Kind...>> step_kernels(steps::KindList<Kind...>) {
    return {{&step<Kind>}...};
}

}  // namespace

const OptimizerKernels optimizer_kernels_table = {sgd, adam, step_kernels(steps::AllKinds())};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
