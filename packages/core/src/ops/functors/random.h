// Functors of ops/random.yaml.
#pragma once

#include "rushlight/export.h"
#include "rushlight/scalar.h"

namespace rushlight::functors {
namespace {

template <class T>
struct DropoutBackward {
    T scale;
    explicit DropoutBackward(const Scalar* p) : scale(static_cast<T>(1 / (1 - p[0].to<double>()))) {}
    RL_HD T operator()(T grad, bool kept) const { return kept ? grad * scale : T(0); }
};

}  // namespace
}  // namespace rushlight::functors
