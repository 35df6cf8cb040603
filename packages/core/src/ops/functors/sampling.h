// Functors of ops/sampling.yaml.
#pragma once

#include "ops/functors/gamma_derivative.h"

namespace rushlight::functors {
namespace {

template <class T>
struct StandardLogGammaGrad {
    explicit StandardLogGammaGrad(const Scalar*) {}
    RL_HD T operator()(T a, T y) const {
        return static_cast<T>(
            math::gamma_derivative(static_cast<double>(a), static_cast<double>(y), false, sizeof(T) == 4));
    }
};
template <class T>
struct StandardLogGammaCurvature {
    explicit StandardLogGammaCurvature(const Scalar*) {}
    RL_HD T operator()(T a, T y) const {
        return static_cast<T>(
            math::gamma_derivative(static_cast<double>(a), static_cast<double>(y), true, sizeof(T) == 4));
    }
};

}  // namespace
}  // namespace rushlight::functors
