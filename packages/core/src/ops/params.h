// Numbers on their way to a device's kernel.
#pragma once

#include "rushlight/error.h"
#include "rushlight/kernel.h"
#include "rushlight/scalar.h"

namespace rushlight {

inline Param to_param(const char* op, Scalar s) {
    RL_CHECK(!s.is_complex(), throw_not_implemented,
             "%s: complex numbers do not reach kernels of devices yet", op);
    Param p{s.is_floating() ? Param::Kind::Float : s.is_bool() ? Param::Kind::Bool : Param::Kind::Int, 0, {}};
    if (s.is_floating()) p.floating = s.to<double>();
    else p.integer = s.to<int64_t>();
    return p;
}

}  // namespace rushlight
