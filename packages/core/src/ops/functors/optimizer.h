// Steps of optimizers that count their own steps: the operators `_<kind>_step_` of ops/optimizer.yaml. The kernels of the
// CPU and of CUDA share them.
//
// Note [Steps that count]
// A step depends on numbers that are stored for each parameter: the number of steps so far, and for some optimizers a factor
// or a rate that changes from step to step. These numbers are tensors without dimensions on the parameter's device. An
// operator reads them, advances them and writes them back. So the host never waits for their values, and each replay of a
// recorded step counts as a step. If an operator raises an error, it has not changed the numbers.
//
// Each kind of optimizer has a struct, which contains its settings and defines
//   kStates, kNumbers: the number of tensors of state, which have the parameter's shape, and of numbers;
//   begin(numbers): advances the numbers of one parameter, and returns an Update, which contains the values that are the
//   same for all elements of the parameter;
//   Update::operator()(p, g, state): updates an element p, whose gradient is g, and its state.
// Loops are vectorised only if their conditions compare numbers of the elements' type. A condition on a bool prevents this,
// even if the bool is the same for all elements. The formulas use fused multiply-adds explicitly. Otherwise the compiler
// would choose which product is not rounded, and could choose differently in each loop.
#pragma once

#include <math.h>

#include "rushlight/export.h"

namespace rushlight::steps {

RL_HD inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
RL_HD inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
RL_HD inline float root(float x) { return __builtin_sqrtf(x); }
RL_HD inline double root(double x) { return __builtin_sqrt(x); }
RL_HD inline float magnitude(float x) { return __builtin_fabsf(x); }
RL_HD inline double magnitude(double x) { return __builtin_fabs(x); }

/// A number that an optimizer stores for each parameter, such as its step count. It is rounded to the dtype of the
/// tensor that stores it.
struct Number {
    double value;
    bool single;  // float32, otherwise float64
    RL_HD void set(double x) { value = single ? static_cast<float>(x) : x; }
    RL_HD void multiply(double x) {
        value = single ? static_cast<float>(value) * static_cast<float>(x) : value * x;
    }
};

/// The settings from which all optimizers in this file compute the gradient of an element.
struct Gradient {
    double sign;  // -1 to maximise, otherwise 1
    double weight_decay;  // weight_decay * parameter is added to the gradient

    RL_HD Gradient(bool maximize, double decay) : sign(maximize ? -1 : 1), weight_decay(decay) {}
    template <class M>
    RL_HD M operator()(M p, M g) const {
        const M decay = static_cast<M>(weight_decay);
        g *= static_cast<M>(sign);
        return decay != M(0) ? fused(p, decay, g) : g;  // an infinite parameter times 0 would be NaN
    }
};

/// RMSprop: Tieleman and Hinton, 2012; the centred version is from Graves, 2013. State: the running mean of the squared
/// gradient, the running mean of the gradient in the centred version, and the momentum buffer.
template <bool kCentered, bool kMomentum>
struct Rmsprop {
    static constexpr int kStates = 1 + kCentered + kMomentum, kNumbers = 1;
    Gradient gradient;
    double lr, alpha, eps, momentum;

    struct Update {
        double lr, alpha, eps, momentum;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M fresh = static_cast<M>(1 - alpha);
            const M square = fused(static_cast<M>(alpha), state[0], fresh * g * g);
            state[0] = square;
            M spread = square;
            if constexpr (kCentered) {
                const M mean = fused(fresh, g - state[1], state[1]);
                state[1] = mean;
                spread = fused(-mean, mean, square);
            }
            const M divisor = root(spread) + static_cast<M>(eps);
            if constexpr (kMomentum) {
                M& buffer = state[kStates - 1];
                buffer = fused(static_cast<M>(momentum), buffer, g / divisor);
                p = fused(static_cast<M>(-lr), buffer, p);
            } else {
                p -= static_cast<M>(lr) * g / divisor;
            }
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        return {lr, alpha, eps, momentum};
    }
};

/// Adagrad: Duchi et al., 2011. State: the sum of the squared gradients.
struct Adagrad {
    static constexpr int kStates = 1, kNumbers = 1;
    Gradient gradient;
    double lr, lr_decay, eps;

    struct Update {
        double rate, eps;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M sum = fused(g, g, state[0]);
            state[0] = sum;
            p -= static_cast<M>(rate) * g / (root(sum) + static_cast<M>(eps));
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        return {lr / (1 + (numbers[0].value - 1) * lr_decay), eps};
    }
};

/// Adadelta: Zeiler, 2012. State: the running mean of the squared gradient, and the running mean of the squared steps.
struct Adadelta {
    static constexpr int kStates = 2, kNumbers = 1;
    Gradient gradient;
    double lr, rho, eps;

    struct Update {
        double lr, rho, eps;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M old = static_cast<M>(rho), fresh = static_cast<M>(1 - rho);
            const M square = fused(old, state[0], fresh * g * g);
            const M change = root(state[1] + static_cast<M>(eps)) / root(square + static_cast<M>(eps)) * g;
            state[0] = square;
            state[1] = fused(old, state[1], fresh * change * change);
            p = fused(static_cast<M>(-lr), change, p);
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        return {lr, rho, eps};
    }
};

/// Adamax: Kingma and Ba, 2015, section 7.1. State: the running mean of the gradient, and the decaying maximum of its
/// magnitude.
struct Adamax {
    static constexpr int kStates = 2, kNumbers = 1;
    Gradient gradient;
    double lr, beta1, beta2, eps;

    struct Update {
        double rate, beta1, beta2, eps;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M mean = fused(static_cast<M>(1 - beta1), g - state[0], state[0]);
            const M before = static_cast<M>(beta2) * state[1], now = magnitude(g) + static_cast<M>(eps);
            const M largest = before > now || before != before ? before : now;  // keeps NaN
            state[0] = mean;
            state[1] = largest;
            p -= static_cast<M>(rate) * mean / largest;
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        return {lr / (1 - ::pow(beta1, numbers[0].value)), beta1, beta2, eps};
    }
};

/// NAdam: Dozat, 2016. State: the running means of the gradient and of its square. Numbers: the product of the momentum
/// factors of all steps, and the step count.
struct Nadam {
    static constexpr int kStates = 2, kNumbers = 2;
    Gradient gradient;
    double lr, beta1, beta2, eps, decoupled_decay, momentum_decay;

    struct Update {
        double kept, of_gradient, of_mean, beta1, beta2, inverse_root, eps;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M mean = fused(static_cast<M>(1 - beta1), g - state[0], state[0]);
            const M square = fused(static_cast<M>(beta2), state[1], static_cast<M>(1 - beta2) * g * g);
            state[0] = mean;
            state[1] = square;
            const M divisor = fused(root(square), static_cast<M>(inverse_root), static_cast<M>(eps));
            const M direction = fused(static_cast<M>(of_gradient), g, static_cast<M>(of_mean) * mean);
            p = fused(static_cast<M>(kept), p, -(direction / divisor));
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        Number &product = numbers[0], &count = numbers[1];
        count.set(count.value + 1);
        const double now = factor(count.value), next = factor(count.value + 1);
        product.multiply(now);
        return {1 - lr * decoupled_decay,
                lr * (1 - now) / (1 - product.value),
                lr * next / (1 - product.value * next),
                beta1,
                beta2,
                1 / root(1 - ::pow(beta2, count.value)),
                eps};
    }
    RL_HD double factor(double step) const { return beta1 * (1 - 0.5 * ::pow(0.96, step * momentum_decay)); }
};

/// RAdam: Liu et al., 2020. State: the running means of the gradient and of its square.
struct Radam {
    static constexpr int kStates = 2, kNumbers = 1;
    Gradient gradient;
    double lr, beta1, beta2, eps, decoupled_decay;

    struct Update {
        double kept, rate, beta1, beta2, eps, rectified;  // rectified is 0 or 1
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M mean = fused(static_cast<M>(1 - beta1), g - state[0], state[0]);
            const M square = fused(static_cast<M>(beta2), state[1], static_cast<M>(1 - beta2) * g * g);
            state[0] = mean;
            state[1] = square;
            const M divisor = static_cast<M>(rectified) != M(0) ? root(square) + static_cast<M>(eps) : M(1);
            p = fused(static_cast<M>(kept), p, -(static_cast<M>(rate) * mean / divisor));
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        const double step = numbers[0].value, power = ::pow(beta2, step);
        // The length of a plain average that is equivalent to the running mean of squares, in the limit and after this step.
        const double limit = 2 / (1 - beta2) - 1, length = limit - 2 * step * power / (1 - power);
        double rate = lr / (1 - ::pow(beta1, step));
        if (length > 5)
            rate *= root((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) *
                    root(1 - power);
        return {1 - lr * decoupled_decay, rate, beta1, beta2, eps, length > 5 ? 1.0 : 0.0};
    }
};

/// Rprop: Riedmiller and Braun, 1993. State: the previous gradient, and the current length of the step for each
/// element.
struct Rprop {
    static constexpr int kStates = 2, kNumbers = 1;
    Gradient gradient;
    double down, up, shortest, longest;

    struct Update {
        double down, up, shortest, longest;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            const M least = static_cast<M>(shortest), most = static_cast<M>(longest);
            const M agreement = g * state[0];
            const M factor = agreement > M(0)   ? static_cast<M>(up)
                             : agreement < M(0) ? static_cast<M>(down)
                                                : M(1);
            M length = state[1] * factor;
            length = length < least ? least : length;
            length = length > most ? most : length;
            g = agreement < M(0) ? M(0) : g;  // no step where the sign has changed
            state[0] = g;
            state[1] = length;
            p -= g > M(0) ? length : g < M(0) ? -length : M(0);
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        numbers[0].set(numbers[0].value + 1);
        return {down, up, shortest, longest};
    }
};

/// Averaged stochastic gradient descent: Polyak and Juditsky, 1992, with the rates of Bottou. State: the running
/// average of the parameter over the steps. Numbers: the weight of the parameter's next value in this average, the next
/// learning rate, and the step count.
struct Asgd {
    static constexpr int kStates = 1, kNumbers = 3;
    Gradient gradient;
    double lr, lambd, alpha, t0;

    struct Update {
        double kept, rate, share;
        template <class M>
        RL_HD void operator()(M& p, M g, M (&state)[kStates]) const {
            p = fused(static_cast<M>(kept), p, -(static_cast<M>(rate) * g));
            const M part = static_cast<M>(share);
            state[0] = part == M(1) ? p : fused(part, p - state[0], state[0]);
        }
    };
    RL_HD Update begin(Number (&numbers)[kNumbers]) const {
        Number &share = numbers[0], &rate = numbers[1], &count = numbers[2];
        const Update update{1 - lambd * rate.value, rate.value, share.value};
        count.set(count.value + 1);
        rate.set(lr / ::pow(1 + lambd * lr * count.value, alpha));
        share.set(1 / (count.value - t0 > 1 ? count.value - t0 : 1));
        return update;
    }
};

/// A list of types.
template <class... Kinds>
struct KindList {};

using AllKinds = KindList<Rmsprop<false, false>, Rmsprop<false, true>, Rmsprop<true, false>,
                          Rmsprop<true, true>, Adagrad, Adadelta, Adamax, Nadam, Radam, Rprop, Asgd>;

}  // namespace rushlight::steps
