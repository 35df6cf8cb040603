"""Recurrent layers."""

from __future__ import annotations

import rushlight_core as core
from rushlight_graph.onnx.builder import Builder, Val
from rushlight_graph.onnx.calls import Call, exports
from rushlight_graph.onnx.graph import UnsupportedError

# For each gate in ONNX's order, its position in our order.
_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
_OPERATORS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}


def _joined(b: Builder, directions: list[list[Val]], gates: tuple[int, ...], hidden: int) -> Val:
    """Return the stacked weights of all directions (directions, ...), with gates in ONNX's order."""
    names = [val.name for parts in directions for val in parts]
    if all(name in b.initializers for name in names):  # all weights are constants
        rows = [
            core.cat(
                [
                    b.initializers[val.name].detach().narrow(0, gate * hidden, hidden)
                    for val in parts
                    for gate in gates
                ]
            )
            for parts in directions
        ]
        return b.constant(core.stack(rows))
    made = []
    for parts in directions:
        blocks = [b.slice(val, 0, gate * hidden, (gate + 1) * hidden) for val in parts for gate in gates]
        made.append(b.unsqueeze(b.op("Concat", *blocks, axis=0) if len(blocks) > 1 else blocks[0], [0]))
    return b.op("Concat", *made, axis=0) if len(made) > 1 else made[0]


@exports("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(b: Builder, call: Call) -> list[Val]:
    kind = call.name
    x, params = call.tensor("input"), call.tensors("params")
    biases, layers, batch_first = call["has_biases"], call["num_layers"], call["batch_first"]
    directions = 2 if call["bidirectional"] else 1
    training = call["train"]
    if call["dropout"] and training and layers > 1:
        raise UnsupportedError("draws random numbers\nhint: call eval() on the model before it is exported")
    states = call.tensors("hx") if kind == "lstm" else [call.tensor("hx")]
    each = 4 if biases else 2
    if len(params) != each * layers * directions:
        raise UnsupportedError("projections of the states have no equivalent in ONNX")
    weight = call.values("params")[1]
    assert weight is not None
    hidden = int(weight.sizes[1])
    gates = _GATES[kind]
    x = b.transpose(x, [1, 0, 2]) if batch_first else x
    last: list[list[Val]] = [[] for _ in states]
    for layer in range(layers):
        first = layer * directions
        weights = [params[(first + d) * each : (first + d + 1) * each] for d in range(directions)]
        w_ih = _joined(b, [part[:1] for part in weights], gates, hidden)
        w_hh = _joined(b, [part[1:2] for part in weights], gates, hidden)
        bias = _joined(b, [part[2:] for part in weights], gates, hidden) if biases else None
        initial = [state if layers == 1 else b.slice(state, 0, first, first + directions) for state in states]
        made = b.ops(
            _OPERATORS[kind],
            *(x, w_ih, w_hh, bias, None, *initial),
            dtypes=[x.dtype] * (1 + len(states)),
            hidden_size=hidden,
            direction="bidirectional" if directions == 2 else "forward",
            linear_before_reset=1 if kind == "gru" else None,
            activations=[kind.removeprefix("rnn_").capitalize()] * directions if "rnn" in kind else None,
        )
        # (time, directions, batch, hidden)
        if directions == 1:
            x = b.squeeze(made[0], [1])
        else:
            x = b.op("Reshape", b.transpose(made[0], [0, 2, 1, 3]), b.ints([0, 0, -1]))
        for found, state in zip(last, made[1:], strict=True):
            found.append(state)
    output = b.transpose(x, [1, 0, 2]) if batch_first else x
    return [output, *(b.op("Concat", *parts, axis=0) if layers > 1 else parts[0] for parts in last)]


def _parts(b: Builder, value: Val, count: int, width: int) -> list[Val]:
    return [b.slice(value, 1, i * width, (i + 1) * width) for i in range(count)]


@exports("_lstm_gates")
def lstm_gates(b: Builder, call: Call) -> list[Val]:
    cell = call.tensor("cell")
    width = int(call.value("cell").sizes[1])
    keep, forget, new, out = _parts(b, call.tensor("gates"), 4, width)
    old = b.op("Mul", b.op("Sigmoid", forget), cell)
    state = b.op("Add", old, b.op("Mul", b.op("Sigmoid", keep), b.op("Tanh", new)))
    return [b.op("Mul", b.op("Sigmoid", out), b.op("Tanh", state)), state]


@exports("_gru_gates")
def gru_gates(b: Builder, call: Call) -> Val:
    hidden = call.tensor("hidden")
    width = int(call.value("hidden").sizes[1])
    given = [_parts(b, call.tensor(name), 3, width) for name in ("from_input", "from_hidden")]
    reset, update = (b.op("Sigmoid", b.op("Add", given[0][i], given[1][i])) for i in range(2))
    new = b.op("Tanh", b.op("Add", given[0][2], b.op("Mul", reset, given[1][2])))
    return b.op("Add", new, b.op("Mul", update, b.op("Sub", hidden, new)))
