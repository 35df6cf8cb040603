// Gates of recurrent layers have shape (batch, gates x hidden), and states have shape (batch, hidden).
#include "bodies/recurrent.h"

namespace rushlight::rules {
namespace {

void check_gates(const char* op, const char* argument, const Tensor& gates, int64_t count,
                 const Tensor& state) {
    floating_only(op, gates);
    same_dtype(op, argument, gates, "state", state);
    RL_CHECK(gates.dim() == 2 && state.dim() == 2 && gates.size(0) == state.size(0) &&
                 gates.size(1) == count * state.size(1),
             throw_runtime,
             "%s(%s): %lld gates for states of shape %s need shape (batch, %lld x hidden), got %s", op,
             argument, (long long)count, to_string(state.sizes()).c_str(), (long long)count,
             to_string(gates.sizes()).c_str());
}

}  // namespace

Outputs lstm_gates(const Tensor& gates, const Tensor& cell) {
    check_gates("lstm_cell", "gates", gates, 4, cell);
    Outputs outs;
    outs.like(cell);
    outs.like(cell);
    return outs;
}

Outputs lstm_gates_backward(const Tensor&, const Tensor&, const Tensor& gates, const Tensor& cell,
                            const Tensor&) {
    Outputs outs;
    outs.like(gates);
    outs.like(cell);
    return outs;
}

Outputs lstm_layer(const Tensor& gates, const Tensor& hidden, const Tensor&, const Tensor&, bool) {
    const int64_t states[] = {gates.size(0), gates.size(1), hidden.size(1)};
    Outputs outs;
    outs.add(states, gates.dtype(), gates.device());
    outs.add(states, gates.dtype(), gates.device());
    outs.like(gates);
    return outs;
}

Outputs lstm_layer_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor& hidden,
                            const Tensor& cell, const Tensor& weight, const Tensor&, const Tensor&,
                            const Tensor& sums, bool) {
    Outputs outs;
    outs.like(sums);
    outs.like(hidden);
    outs.like(cell);
    outs.like(weight);
    return outs;
}

Outputs gru_gates(const Tensor& from_input, const Tensor& from_hidden, const Tensor& hidden) {
    check_gates("gru_cell", "from_input", from_input, 3, hidden);
    check_gates("gru_cell", "from_hidden", from_hidden, 3, hidden);
    Outputs outs;
    outs.like(hidden);
    return outs;
}

Outputs gru_gates_backward(const Tensor&, const Tensor& from_input, const Tensor& from_hidden,
                           const Tensor& hidden) {
    Outputs outs;
    outs.like(from_input);
    outs.like(from_hidden);
    outs.like(hidden);
    return outs;
}

}  // namespace rushlight::rules
