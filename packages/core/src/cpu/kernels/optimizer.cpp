#include "cpu/optimizer_kernels.h"

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
// A step reads three to five arrays side by side and writes most of them, and stops where its parameters are larger than the
// caches: it is as fast as lines arrive. The processor's own prefetchers follow each array, but not far enough; asking for each line
// six lines ahead takes 0.95 of the time. One line of each array at a time: requests in bursts, for as little as two lines of
// each, take longer than none, as do streaming stores, since what is written was read just before.
constexpr int64_t kLineBytes = 64, kBytesAhead = 6 * kLineBytes;

/// Calls update(i) for i in [begin, end), a line of the arrays at a time, vectorised.
template <class T, class Update, class... Arrays>
[[gnu::always_inline]] inline void each_element(int64_t begin, int64_t end, Update&& update,
                                                const Arrays*... arrays) {
    constexpr int64_t kLine = kLineBytes / static_cast<int64_t>(sizeof(T));
    int64_t i = begin;
    for (; i + kLine <= end; i += kLine) {
        (__builtin_prefetch(reinterpret_cast<const char*>(arrays + i) + kBytesAhead), ...);
#pragma omp simd
        for (int64_t k = 0; k < kLine; ++k) update(i + k);
    }
    for (; i < end; ++i) {
        asm volatile("");  // not worth a vector loop of its own
        update(i);
    }
}

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

// The switches are constants of the loops, which the compiler then turns into vector code.
template <class T, bool kMomentum, bool kFirst, bool kNesterov, bool kScaled>
void sgd_loop(const SgdStep& s, int64_t begin, int64_t end) {
    using M = typename Math<T>::type;
    T* __restrict param = static_cast<T*>(s.param);
    T* __restrict grad = static_cast<T*>(s.grad);
    T* __restrict buffer = static_cast<T*>(s.momentum_buffer);
    const M sign = s.maximize ? M(-1) : M(1), inverse_scale = static_cast<M>(1 / s.grad_scale);
    const M decay = static_cast<M>(s.weight_decay), momentum = static_cast<M>(s.momentum),
            lr = static_cast<M>(s.lr);
    const M damped = static_cast<M>(1 - s.dampening);
    const bool decays = s.weight_decay != 0;  // an infinite parameter times a decay of 0 would be NaN
    const auto update = [&](int64_t i) __attribute__((always_inline)) {
        const M p = static_cast<M>(param[i]);
        M g = static_cast<M>(grad[i]);
        if constexpr (kScaled) {
            g *= inverse_scale;
            grad[i] = T(g);
        }
        g *= sign;
        if (decays) g += p * decay;
        if constexpr (kMomentum) {
            M b = g;
            if constexpr (!kFirst) b = momentum * static_cast<M>(buffer[i]) + damped * g;
            buffer[i] = T(b);
            if constexpr (kNesterov) {
                g += momentum * b;
            } else {
                g = b;
            }
        }
        param[i] = T(p - lr * g);
    };
    if constexpr (kMomentum) {
        each_element<T>(begin, end, update, param, grad, buffer);
    } else {
        each_element<T>(begin, end, update, param, grad);
    }
}

template <class T>
void sgd_of(const SgdStep& s, int64_t begin, int64_t end) {
    auto scaled = [&]<bool kScaled>() {
        if (s.momentum_buffer == nullptr) return sgd_loop<T, false, false, false, kScaled>(s, begin, end);
        if (s.is_first_step) {
            return s.nesterov ? sgd_loop<T, true, true, true, kScaled>(s, begin, end)
                              : sgd_loop<T, true, true, false, kScaled>(s, begin, end);
        }
        return s.nesterov ? sgd_loop<T, true, false, true, kScaled>(s, begin, end)
                          : sgd_loop<T, true, false, false, kScaled>(s, begin, end);
    };
    s.grad_scale == 1 ? scaled.template operator()<false>() : scaled.template operator()<true>();
}

template <class T, bool kAmsgrad, bool kDecoupled, bool kScaled>
void adam_loop(const AdamStep& s, int64_t begin, int64_t end) {
    using M = typename Math<T>::type;
    T* __restrict param = static_cast<T*>(s.param);
    T* __restrict grad = static_cast<T*>(s.grad);
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
    const bool decays = s.weight_decay != 0;
    const auto update = [&](int64_t i) __attribute__((always_inline)) {
        const M p = static_cast<M>(param[i]);
        M g = static_cast<M>(grad[i]);
        if constexpr (kScaled) {
            g *= inverse_scale;
            grad[i] = T(g);
        }
        g *= sign;
        if constexpr (!kDecoupled) {
            if (decays) g += p * decay;
        }
        M m = static_cast<M>(first[i]), v = static_cast<M>(second[i]);
        m += new1 * (g - m);
        v = beta2 * v + new2 * g * g;
        first[i] = T(m);
        second[i] = T(v);
        if constexpr (kAmsgrad) {
            const M before = static_cast<M>(largest[i]);
            v = before > v ? before : v;
            largest[i] = T(v);
        }
        const M change = size * m / (root(v) * inverse_root + eps);
        if constexpr (kDecoupled) {
            param[i] = T(kept * p - change);
        } else {
            param[i] = T(p - change);
        }
    };
    if constexpr (kAmsgrad) {
        each_element<T>(begin, end, update, param, grad, first, second, largest);
    } else {
        each_element<T>(begin, end, update, param, grad, first, second);
    }
}

template <class T>
void adam_of(const AdamStep& s, int64_t begin, int64_t end) {
    auto scaled = [&]<bool kScaled>() {
        if (s.max_exp_avg_sq != nullptr) {
            return s.decoupled ? adam_loop<T, true, true, kScaled>(s, begin, end)
                               : adam_loop<T, true, false, kScaled>(s, begin, end);
        }
        return s.decoupled ? adam_loop<T, false, true, kScaled>(s, begin, end)
                           : adam_loop<T, false, false, kScaled>(s, begin, end);
    };
    s.grad_scale == 1 ? scaled.template operator()<false>() : scaled.template operator()<true>();
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

}  // namespace

const OptimizerKernels optimizer_kernels_table = {sgd, adam};

}  // namespace rushlight::cpu::RUSHLIGHT_CPU
