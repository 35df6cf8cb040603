// Converts arguments of a graph to boxed arguments of dispatch.
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

/// Returns the boxed arguments of a call. `tensor_of(id)` returns the tensor of a value.
template <class F>
Stack boxed_arguments(const Node& node, const F& tensor_of) {
    Stack stack;
    for (const Argument& argument : node.arguments) {
        if (auto* use = std::get_if<Use>(&argument)) {
            stack.emplace_back(tensor_of(use->value));
        } else if (auto* list = std::get_if<std::vector<std::optional<ValueId>>>(&argument)) {
            std::vector<Tensor> tensors;
            for (const auto& id : *list) tensors.push_back(id ? tensor_of(*id) : Tensor());
            stack.emplace_back(std::move(tensors));
        } else {
            stack.push_back(boxed_argument(argument));
        }
    }
    return stack;
}

}  // namespace rushlight::graph
