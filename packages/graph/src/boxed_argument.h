// Converts an argument of a graph to a boxed argument of dispatch.
#pragma once

#include "rushlight/graph/graph.h"
#include "rushlight/value.h"

namespace rushlight::graph {

/// Returns the boxed argument. Tensors are left empty; a run sets them.
inline Value boxed_argument(const Argument& argument) {
    return std::visit(
        []<class T>(const T& v) -> Value {
            if constexpr (std::is_same_v<T, Use> || std::is_same_v<T, std::vector<std::optional<ValueId>>>)
                return {};
            else if constexpr (std::is_same_v<T, std::monostate>) return {};
            else if constexpr (std::is_same_v<T, Complex<double>>) return Value(Scalar(v));
            else return Value(v);
        },
        argument);
}

}  // namespace rushlight::graph
