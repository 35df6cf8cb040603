"""Recurrent layers over sequences."""

from __future__ import annotations

import math
import warnings

import rushlight_core as core
from rushlight_core import Tensor

from .. import init
from .._core import operator
from .._typing import Any
from ..functional._arguments import check_probability
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence

_NETWORKS = {
    "RNN_TANH": operator("rnn_tanh"),
    "RNN_RELU": operator("rnn_relu"),
    "LSTM": operator("lstm"),
    "GRU": operator("gru"),
}
_lstm_cell = operator("lstm_cell")
_gru_cell = operator("gru_cell")
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """The base class of recurrent layers. It handles parameters, initial states and packed sequences.

    The parameters of layer k are `weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`, `bias_hh_lk` and, for an LSTM with
    `proj_size`, `weight_hr_lk`. The names for the second direction end in `_reverse`.

    Shape:
        - `weight_ih_lk`: (G · hidden_size, input_size) in the first layer, and (G · hidden_size, D · H) in other layers,
          where G is 4 for an LSTM, 3 for a GRU and otherwise 1, D is 2 if bidirectional, else 1, and H is `proj_size` if it
          is not 0 and otherwise `hidden_size`.
        - `weight_hh_lk`: (G · hidden_size, H); `bias_ih_lk` and `bias_hh_lk`: (G · hidden_size); `weight_hr_lk`:
          (proj_size, hidden_size).
        - Inputs and outputs: see :class:`RNN`, :class:`LSTM` and :class:`GRU`, the subclasses that select the mode.

    Raises:
        ValueError: the mode, a size or `dropout` is not valid.
        TypeError: `input_size`, `hidden_size` or `num_layers` is not an int, or `bias` or `batch_first` is not a bool.

    Example:
        >>> isinstance(nn.GRU(10, 20), nn.RNNBase), list(nn.GRU(10, 20).state_dict())
        (True, ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0'])
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in _NETWORKS:
            raise ValueError(f"{name}(mode): got {mode!r}, needs one of {', '.join(_NETWORKS)}")
        for argument, number in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if not isinstance(number, int):
                raise TypeError(f"{name}({argument}): got {type(number).__name__}, needs an int")
            if number <= 0:
                raise ValueError(f"{name}({argument}): got {number}, needs a positive number")
        for argument, switch in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(switch, bool):
                raise TypeError(f"{name}({argument}): got {type(switch).__name__}, needs a bool")
        if proj_size and mode != "LSTM":
            raise ValueError(
                f"{name}(proj_size): must be 0 because only LSTM supports projections, got {proj_size}"
            )
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"{name}(proj_size): got {proj_size}, needs less than hidden_size={hidden_size}")
        if isinstance(dropout, bool):
            raise ValueError(f"{name}(dropout): got {dropout}, needs a number from 0 to 1, not a bool")
        check_probability(name, dropout)
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                f"{name}(dropout): dropout applies between layers and has no effect with one layer",
                stacklevel=3,
            )
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout: float = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        rows = _GATES[mode] * hidden_size
        out = proj_size or hidden_size
        self._names: list[list[str]] = []
        for layer in range(num_layers):
            features = input_size if layer == 0 else out * (2 if bidirectional else 1)
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[: 2 if bidirectional else 1]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                self._names.append([kind + suffix for kind in shapes])
                for kind, shape in shapes.items():
                    parameter = Parameter(core.empty(shape, device=device, dtype=dtype))
                    self.register_parameter(kind + suffix, parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters from the uniform distribution U(-k, k) with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing. PyTorch's method makes the weights contiguous in memory, which is not needed here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, as one list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._names]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run the network over `input`, beginning with the states `hx`, which are zeros by default.

        Args:
            input: (T, N, input_size); (N, T, input_size) with `batch_first`; (T, input_size) without a batch; or a
                :class:`PackedSequence`.
            hx: (D · num_layers, N, H), or (D · num_layers, H) without a batch, where D is 2 if bidirectional, else 1, and H
                is `proj_size` if it is not 0 and otherwise `hidden_size`. For an LSTM, `hx` is a pair of hidden and cell
                states, and the cell states have `hidden_size` features.

        Returns:
            the hidden states of the last layer at each step, in the shape of the input but with D · H features; and the
                last states of all layers, in the shape of `hx`.
        """
        packed = isinstance(input, PackedSequence)
        unbatched = False
        if packed:
            data, batch_sizes, sorted_indices, unsorted_indices = input
            batch = int(batch_sizes[0])
        else:
            name = type(self).__name__
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{name}(input): got {input.dim()} dimensions, needs 3, or 2 without a batch"
                )
            unbatched = input.dim() == 2
            data = input.unsqueeze(0 if self.batch_first else 1) if unbatched else input
            batch = data.shape[0 if self.batch_first else 1]
            sorted_indices = unsorted_indices = None
        states = self._first_states(hx, data, batch, unbatched, sorted_indices)
        weights = [weight for run in self.all_weights for weight in run]
        settings = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        lstm = self.mode == "LSTM"
        given = states if lstm else states[0]
        if packed:
            output, *last = _NETWORKS[self.mode](data, batch_sizes, given, weights, *settings)
        else:
            output, *last = _NETWORKS[self.mode](data, given, weights, *settings, self.batch_first)
        if unsorted_indices is not None:
            last = [state.index_select(1, unsorted_indices) for state in last]
        if unbatched:
            output = output.squeeze(0 if self.batch_first else 1)
            last = [state.squeeze(1) for state in last]
        if packed:
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return output, (tuple(last) if lstm else last[0])

    def _first_states(
        self, hx: Any, data: Tensor, batch: int, unbatched: bool, order: Tensor | None
    ) -> list[Tensor]:
        name = type(self).__name__
        if data.shape[-1] != self.input_size:
            raise RuntimeError(
                f"{name}(input): got a last dimension of size {data.shape[-1]}, needs input_size={self.input_size}"
            )
        if data.dtype != self.weight_ih_l0.dtype:
            raise ValueError(
                f"{name}(input): got {data.dtype}, needs the layer's dtype {self.weight_ih_l0.dtype}"
            )
        count = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            widths.append(self.hidden_size)
        if hx is None:
            return [core.zeros((count, batch, w), dtype=data.dtype, device=data.device) for w in widths]
        states = list(hx) if self.mode == "LSTM" else [hx]
        if len(states) != len(widths):
            raise RuntimeError(f"{name}(hx): got {len(states)} tensors, needs a hidden and a cell state")
        for position, (state, width) in enumerate(zip(states, widths, strict=True)):
            needed = (count, width) if unbatched else (count, batch, width)
            if tuple(state.shape) != needed:
                what = ("hidden", "cell")[position]
                raise RuntimeError(
                    f"{name}(hx): got {what} states of shape {tuple(state.shape)}, needs {needed}"
                )
        if unbatched:
            states = [state.unsqueeze(1) for state in states]
        return states if order is None else [state.index_select(1, order) for state in states]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False)):
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        for name in ("dropout", "bidirectional"):
            if getattr(self, name):
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """An Elman network: at each step ``h = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh)`` (Elman 1990).

    All parameters are initialised from the uniform distribution U(-k, k) with k = 1 / sqrt(hidden_size).

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers: number of layers. The input of each layer after the first is the output of the previous layer.
        nonlinearity: "tanh" or "relu".
        bias: whether to add the biases b_ih and b_hh.
        batch_first: whether the batch is the first dimension of input and output, not the second. It does not affect
            `hx`.
        dropout: probability of zeroing each output of every layer except the last, in training mode.
        bidirectional: whether to also run the network from the end of the sequence to its beginning. The features of both
            directions are concatenated.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (T, N, input_size); (N, T, input_size) with `batch_first`; (T, input_size) without a batch; or a
          :class:`~rushlight_nn.utils.rnn.PackedSequence`.
        - `hx`: (D · num_layers, N, hidden_size), where D is 2 if bidirectional, else 1; zeros by default.
        - Output: the shape of the input, but with D · hidden_size features; and the last states, in the shape of `hx`.

    Raises:
        ValueError: `nonlinearity`, a size or `dropout` is not valid, or the dtype or the number of dimensions of the
            input is wrong.
        RuntimeError: the sizes of the input or of `hx` do not fit (raised when the module is called).

    Example:
        >>> rnn = nn.RNN(input_size=10, hidden_size=20, num_layers=2)
        >>> output, hn = rnn(torch.randn(5, 3, 10), torch.zeros(2, 3, 20))
        >>> output.shape, hn.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN(nonlinearity): got {nonlinearity!r}, needs 'tanh' or 'relu'")
        self.nonlinearity = nonlinearity
        super().__init__(
            f"RNN_{nonlinearity.upper()}",
            *(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional),
            device=device,
            dtype=dtype,
        )


class LSTM(RNNBase):
    """A long short-term memory (LSTM) network (Hochreiter and Schmidhuber 1997).

    At each step, with gates i, f, o and the candidate g, ``c = f · c + i · g`` and ``h = o · tanh(c)``. The
    rows of the weights are ordered by gate: i, f, g, o.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers, bias, batch_first, dropout, bidirectional, device, dtype: see :class:`RNN`.
        proj_size: number of features to which the hidden states are projected (Sak et al. 2014). 0 means no projection.

    Shape:
        - Input: (T, N, input_size); (N, T, input_size) with `batch_first`; (T, input_size) without a batch; or a
          :class:`~rushlight_nn.utils.rnn.PackedSequence`.
        - `hx`: a pair of hidden states (D · num_layers, N, H) and cell states (D · num_layers, N, hidden_size), where H
          is `proj_size` if it is not 0 and otherwise `hidden_size`, and D is 2 if bidirectional, else 1; zeros by
          default.
        - Output: the shape of the input, but with D · H features; and the pair of last states.

    Example:
        >>> lstm = nn.LSTM(input_size=10, hidden_size=20, batch_first=True, bidirectional=True)
        >>> output, (hn, cn) = lstm(torch.randn(3, 5, 10))
        >>> output.shape, hn.shape, cn.shape
        (torch.Size([3, 5, 40]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            *(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size),
            device=device,
            dtype=dtype,
        )


class GRU(RNNBase):
    """A gated recurrent unit (GRU) network (Cho et al. 2014).

    At each step, with the reset gate r, the update gate z and the candidate n, ``h = (1 - z) · n + z · h``.
    The reset gate multiplies the product of the state and its weights:
    ``n = tanh(x W_inᵀ + b_in + r · (h W_hnᵀ + b_hn))``. The rows of the weights are ordered by gate: r, z, n.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers, bias, batch_first, dropout, bidirectional, device, dtype: see :class:`RNN`.

    Shape:
        - Input: (T, N, input_size); (N, T, input_size) with `batch_first`; (T, input_size) without a batch; or a
          :class:`~rushlight_nn.utils.rnn.PackedSequence`.
        - `hx`: (D · num_layers, N, hidden_size), where D is 2 if bidirectional, else 1; zeros by default.
        - Output: the shape of the input, but with D · hidden_size features; and the last states, in the shape of `hx`.

    Example:
        >>> gru = nn.GRU(input_size=10, hidden_size=20)
        >>> output, hn = gru(torch.randn(5, 3, 10))
        >>> output.shape, hn.shape
        (torch.Size([5, 3, 20]), torch.Size([1, 3, 20]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU",
            *(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional),
            device=device,
            dtype=dtype,
        )


class RNNCellBase(Module):
    """The base class of layers that compute one step of a recurrent network. It stores the parameters.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether to add the biases `bias_ih` and `bias_hh`.
        num_chunks: number of gates.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - `weight_ih`: (num_chunks · hidden_size, input_size); `weight_hh`: (num_chunks · hidden_size, hidden_size).
        - `bias_ih` and `bias_hh`: (num_chunks · hidden_size).

    Raises:
        ValueError: the input has neither 1 nor 2 dimensions, or a state has a different number of dimensions
            from the input (raised when the module is called).
        RuntimeError: the sizes of the input or the states do not fit (raised when the module is called).

    Example:
        >>> nn.GRUCell(10, 20).weight_ih.shape, nn.LSTMCell(10, 20).weight_ih.shape
        (torch.Size([60, 10]), torch.Size([80, 10]))
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size

        def new(*shape: int) -> Parameter:
            return Parameter(core.empty(shape, device=device, dtype=dtype))

        self.weight_ih = new(rows, input_size)
        self.weight_hh = new(rows, hidden_size)
        self.register_parameter("bias_ih", new(rows) if bias else None)
        self.register_parameter("bias_hh", new(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the parameters from the uniform distribution U(-k, k) with k = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _step(self, function: Any, input: Tensor, states: Any) -> tuple[Tensor, ...]:
        """Add a batch dimension to tensors that lack it, and call `function`. States are zeros by default."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}(input): got {input.dim()} dimensions, needs 2, or 1 without a batch")
        count = 2 if isinstance(self, LSTMCell) else 1
        if states is not None:
            for state in states:
                if state.dim() != input.dim():
                    raise ValueError(
                        f"{name}(hx): got {state.dim()} dimensions, needs {input.dim()}, like the input"
                    )
        unbatched = input.dim() == 1
        if unbatched:
            input = input.unsqueeze(0)
            states = None if states is None else [state.unsqueeze(0) for state in states]
        if states is None:
            shape = (input.shape[0], self.hidden_size)
            states = [core.zeros(shape, dtype=input.dtype, device=input.device)] * count
        given = list(states) if count == 2 else states[0]
        result = function(input, given, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        results = tuple(result) if count == 2 else (result,)
        return tuple(state.squeeze(0) for state in results) if unbatched else results

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        return text if self.bias else text + ", bias=False"


class RNNCell(RNNCellBase):
    """One step of an Elman network: ``h = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh)``.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether to add the biases b_ih and b_hh.
        nonlinearity: "tanh" or "relu".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, input_size) or (input_size).
        - `hx` and output: (N, hidden_size) or (hidden_size); `hx` is zeros by default.

    Raises:
        RuntimeError: `nonlinearity` is neither "tanh" nor "relu" (raised when the module is called).

    Example:
        >>> cell = nn.RNNCell(10, 20)
        >>> h = torch.zeros(3, 20)
        >>> for x in torch.randn(6, 3, 10):
        ...     h = cell(x, h)
        >>> h.shape
        torch.Size([3, 20])
    """

    _FUNCTIONS = {"tanh": operator("rnn_tanh_cell"), "relu": operator("rnn_relu_cell")}

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state. The state `hx` is zeros by default."""
        if self.nonlinearity not in self._FUNCTIONS:
            raise RuntimeError(f"RNNCell(nonlinearity): got {self.nonlinearity!r}, needs 'tanh' or 'relu'")
        function = self._FUNCTIONS[self.nonlinearity]
        return self._step(function, input, None if hx is None else [hx])[0]

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory network; see :class:`LSTM`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether to add the biases `bias_ih` and `bias_hh`.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, input_size) or (input_size).
        - `hx` and output: a pair of the hidden and the cell state, each (N, hidden_size) or (hidden_size); `hx` is
          zeros by default.

    Example:
        >>> cell = nn.LSTMCell(10, 20)
        >>> h, c = torch.zeros(3, 20), torch.zeros(3, 20)
        >>> for x in torch.randn(6, 3, 10):
        ...     h, c = cell(x, (h, c))
        >>> h.shape, c.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the new states. The states `hx` are zeros by default."""
        hidden, cell = self._step(_lstm_cell, input, hx)
        return hidden, cell


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit network; see :class:`GRU`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether to add the biases `bias_ih` and `bias_hh`.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        - Input: (N, input_size) or (input_size).
        - `hx` and output: (N, hidden_size) or (hidden_size); `hx` is zeros by default.

    Example:
        >>> cell = nn.GRUCell(10, 20)
        >>> h = torch.zeros(3, 20)
        >>> for x in torch.randn(6, 3, 10):
        ...     h = cell(x, h)
        >>> h.shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the new state. The state `hx` is zeros by default."""
        return self._step(_gru_cell, input, None if hx is None else [hx])[0]
