// The generated list of every operator.
#pragma once

#include <span>
#include <vector>

namespace rushlight {
struct Operator;
std::span<Operator* const> operator_table();
/// Returns one operator for each set of kernels. If several forms of an operator share a set of kernels, the result
/// contains the functional form, or the in-place form if there is no functional form.
std::vector<Operator*> operators_with_kernels();
}  // namespace rushlight
