// The generated list of every operator.
#pragma once

#include <span>
#include <vector>

namespace rushlight {
struct Operator;
std::span<Operator* const> operator_table();
/// One operator for each set of kernels: of the forms that share a set, the functional one if there is one, else the
/// in-place one.
std::vector<Operator*> operators_with_kernels();
}  // namespace rushlight
