// The generated list of every operator.
#pragma once

#include <span>

namespace rushlight {
struct Operator;
std::span<Operator* const> operator_table();
}  // namespace rushlight
