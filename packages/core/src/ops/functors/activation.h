// Functors of ops/activation.yaml, each with its derivative. Arguments of a derivative: grad, then the tensors that the
// formula saves.
#pragma once

#include <limits>
#include <utility>

#include "ops/functors/bits.h"
#include "ops/functors/complex_math.h"
#include "ops/functors/select.h"

namespace rushlight::functors {
namespace {

template <class T>
struct Relu {
    explicit Relu(const Scalar*) {}
    RL_HD T operator()(T x) const { return x < T(0) ? T(0) : x; }  // keeps NaN
    template <class Stored>
    struct OfBits {
        explicit OfBits(const Scalar*) {}
        // Negative numbers, from the smallest to infinity, are adjacent as unsigned integers.
        uint16_t operator()(uint16_t x) const {
            return uint16_t(x - (kSignBit + 1)) < kInfinityBits<Stored> ? uint16_t{0} : x;
        }
    };
};

// Returns x if it is above the threshold, otherwise the value.
template <class T>
struct Threshold {
    T threshold, value;
    explicit Threshold(const Scalar* p) : threshold(p[0].to<T>()), value(p[1].to<T>()) {}
    RL_HD T operator()(T x) const { return x <= threshold ? value : x; }
};
template <class T>
struct ThresholdBackward {
    T threshold;
    explicit ThresholdBackward(const Scalar* p) : threshold(p[0].to<T>()) {}
    RL_HD T operator()(T grad, T x) const { return x <= threshold ? T(0) : grad; }
};

template <class T>
struct LeakyRelu {
    T slope;
    explicit LeakyRelu(const Scalar* p) : slope(p[0].to<T>()) {}
    RL_HD T operator()(T x) const { return x > T(0) ? x : x * slope; }
};
template <class T>
struct LeakyReluBackward {
    T slope;
    explicit LeakyReluBackward(const Scalar* p) : slope(p[0].to<T>()) {}
    RL_HD T operator()(T grad, T x) const { return x > T(0) ? grad : grad * slope; }
};

// scale * x above zero, and scale * alpha * (exp(input_scale * x) - 1) below.
template <class T>
struct Elu {
    T alpha, scale, input_scale;
    explicit Elu(const Scalar* p)
        : alpha(p[0].to<T>() * p[1].to<T>()), scale(p[1].to<T>()), input_scale(p[2].to<T>()) {}
    RL_HD T operator()(T x) const {
        T below = alpha * math::expm1(x * input_scale);
        return x > T(0) ? x * scale : below;
    }
};
template <class T>
struct EluBackward {
    T alpha, scale, input_scale;
    explicit EluBackward(const Scalar* p)
        : alpha(p[0].to<T>() * p[1].to<T>() * p[2].to<T>()), scale(p[1].to<T>()), input_scale(p[2].to<T>()) {}
    RL_HD T operator()(T grad, T x) const {
        T below = alpha * math::exp(x * input_scale);
        return grad * (x > T(0) ? scale : below);
    }
};

template <class T>
struct Silu {
    explicit Silu(const Scalar*) {}
    RL_HD T operator()(T x) const { return x / (T(1) + math::exp(-x)); }
};
template <class T>
struct SiluBackward {
    explicit SiluBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const {
        T s = math::sigmoid(x);
        return grad * s * (T(1) + x * (T(1) - s));
    }
};

template <class T>
struct Mish {
    explicit Mish(const Scalar*) {}
    RL_HD T operator()(T x) const { return x * math::tanh(x > T(20) ? x : math::log1p(math::exp(x))); }
};
template <class T>
struct MishBackward {
    explicit MishBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const {
        T t = math::tanh(x > T(20) ? x : math::log1p(math::exp(x)));
        return grad * (t + x * math::sigmoid(x) * (T(1) - t * t));
    }
};

// GELU: D. Hendrycks, K. Gimpel, "Gaussian error linear units", 2016; exact, or approximated with tanh.
// The normal distribution function, with an absolute error of about one rounding unit.
RL_HD inline double normal_cdf(double x) { return 0.5 * (1 + math::erf(x * 0.70710678118654752)); }
// A Chebyshev fit of (cdf(x) - 1/2) / x as a function of x^2, which costs less than erf.
RL_HD inline float normal_cdf(float x) {
    const float end = 5.6f, inside = x > end ? end : x < -end ? -end : x;
    const float t = inside * inside * (1 / 15.68f) - 1.f;
    constexpr float kFit[] = {
        0.126259596f,  -0.0630512551f,   0.0469806019f,   -0.0383469166f,   0.0319769793f,  -0.026294843f,
        0.0208750588f, -0.0158444586f,   0.011285788f,    -0.00729917288f,  0.00460818607f, -0.00320995518f,
        0.001747897f,  -0.000379875606f, 0.000208408765f, -0.000401805919f, 0.000171479923f};
    float p = kFit[16];
    for (int i = 15; i >= 0; --i) p = p * t + kFit[i];
    const float cdf = 0.5f + inside * p;
    return x < -end ? 0.f : x > end ? 1.f : cdf;
}

template <class T>
struct Gelu {
    explicit Gelu(const Scalar*) {}
    RL_HD T operator()(T x) const { return x * normal_cdf(x); }
};
template <class T>
struct GeluBackward {
    explicit GeluBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const {
        T pdf = T(0.39894228040143268) * math::exp(T(-0.5) * x * x);
        return grad * (normal_cdf(x) + x * pdf);
    }
};
template <class T>
struct GeluTanh {
    explicit GeluTanh(const Scalar*) {}
    // (1 + tanh u) / 2 is sigmoid(2 u).
    RL_HD T operator()(T x) const {
        return x * math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
    }
};
template <class T>
struct GeluTanhBackward {
    explicit GeluTanhBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const {
        T s = math::sigmoid(T(1.5957691216057308) * (x + T(0.044715) * x * x * x));
        T inner = T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * x * x);
        return grad * (s + x * s * (T(1) - s) * inner);
    }
};

// log(1 + exp(beta x)) / beta, or x if beta x is above the threshold.
template <class T>
struct Softplus {
    T beta, threshold;
    explicit Softplus(const Scalar* p) : beta(p[0].to<T>()), threshold(p[1].to<T>()) {}
    RL_HD T operator()(T x) const {
        T soft = math::log1p(math::exp(x * beta)) / beta;
        return x * beta > threshold ? x : soft;
    }
};
template <class T>
struct SoftplusBackward {
    T beta, threshold;
    explicit SoftplusBackward(const Scalar* p) : beta(p[0].to<T>()), threshold(p[1].to<T>()) {}
    RL_HD T operator()(T grad, T x) const {
        T soft = grad * math::sigmoid(x * beta);
        return x * beta > threshold ? grad : soft;
    }
};

// Converts a limit to T. For integer types, a limit out of range becomes the nearest value of T.
template <class T>
inline T limit(Scalar v) {
    if constexpr (std::is_floating_point_v<T>) {
        return v.to<T>();
    } else {
        int64_t n = v.to<int64_t>();
        constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
        return std::cmp_less(n, low) ? low : std::cmp_greater(n, high) ? high : static_cast<T>(n);
    }
}

template <class T>
struct Hardtanh {
    T low, high;
    explicit Hardtanh(const Scalar* p) : low(limit<T>(p[0])), high(limit<T>(p[1])) {
        if (low != low) high = low;
    }
    // As in clamp, the result is NaN if a bound is NaN.
    RL_HD T operator()(T x) const { return high != high ? high : between(x, low, high); }
};
template <class T>
struct HardtanhBackward {
    T low, high;
    explicit HardtanhBackward(const Scalar* p) : low(p[0].to<T>()), high(p[1].to<T>()) {}
    RL_HD T operator()(T grad, T x) const { return x <= low || x >= high ? T(0) : grad; }
};

// x * clamp(x + 3, 0, 6) / 6.
template <class T>
struct Hardswish {
    explicit Hardswish(const Scalar*) {}
    RL_HD T operator()(T x) const {
        T gate = x + T(3) < T(0) ? T(0) : x + T(3) > T(6) ? T(6) : x + T(3);
        return x * gate / T(6);
    }
};
template <class T>
struct HardswishBackward {
    explicit HardswishBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const {
        T inside = grad * (x / T(3) + T(0.5));
        return x <= T(-3) ? T(0) : x >= T(3) ? grad : inside;
    }
};
template <class T>
struct Hardsigmoid {
    explicit Hardsigmoid(const Scalar*) {}
    RL_HD T operator()(T x) const {
        T gate = x + T(3) < T(0) ? T(0) : x + T(3) > T(6) ? T(6) : x + T(3);
        return gate / T(6);
    }
};
template <class T>
struct HardsigmoidBackward {
    explicit HardsigmoidBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const { return x > T(-3) && x < T(3) ? grad / T(6) : T(0); }
};

template <class T>
struct LogSigmoid {
    explicit LogSigmoid(const Scalar*) {}
    RL_HD T operator()(T x) const { return (x < T(0) ? x : T(0)) - math::log1p(math::exp(-std::fabs(x))); }
};
template <class T>
struct LogSigmoidBackward {
    explicit LogSigmoidBackward(const Scalar*) {}
    RL_HD T operator()(T grad, T x) const { return grad * math::sigmoid(-x); }
};

template <class T>
struct Softsign {
    explicit Softsign(const Scalar*) {}
    RL_HD T operator()(T x) const {
        if constexpr (kIsComplex<T>) return x / (T(1) + T(math::abs(x)));
        else return x / (T(1) + std::fabs(x));
    }
};
template <class T>
struct Tanhshrink {
    explicit Tanhshrink(const Scalar*) {}
    RL_HD T operator()(T x) const { return x - math::tanh(x); }
};

// NaN is kept.
template <class T>
struct Softshrink {
    T lambd;
    explicit Softshrink(const Scalar* p) : lambd(p[0].to<T>()) {}
    RL_HD T operator()(T x) const { return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0); }
};
template <class T>
struct Hardshrink {
    T lambd;
    explicit Hardshrink(const Scalar* p) : lambd(p[0].to<T>()) {}
    RL_HD T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : x; }
};
template <class T>
struct ShrinkBackward {
    T lambd;
    explicit ShrinkBackward(const Scalar* p) : lambd(p[0].to<T>()) {}
    RL_HD T operator()(T grad, T x) const { return x >= -lambd && x <= lambd ? T(0) : grad; }
};

template <class T>
struct Prelu {
    explicit Prelu(const Scalar*) {}
    RL_HD T operator()(T x, T slope) const { return x > T(0) ? x : x * slope; }
};

}  // namespace
}  // namespace rushlight::functors
