// The generated list of every operator.
#pragma once

#include <span>
#include <vector>

namespace rushlight {
struct Operator;
std::span<Operator* const> operator_table();
/// Those that stand for a set of kernels: of the forms that share one the functional, else the in-place one.
std::vector<Operator*> operators_with_kernels();
}  // namespace rushlight
