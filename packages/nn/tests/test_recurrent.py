"""Recurrent layers and packed sequences, compared with loops over single steps."""

from __future__ import annotations

import pickle

import pytest

import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn.utils import rnn


def close(a, b):
    return core.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_layer_is_its_cell_step_by_step(kind):
    layer, cell = getattr(nn, kind)(3, 4), getattr(nn, kind + "Cell")(3, 4)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = core.randn(5, 2, 3)
    with core.no_grad():
        output, last = layer(x)
        state = None
        for step in range(5):
            state = cell(x[step], state)
            assert close(output[step], state[0] if kind == "LSTM" else state)
    for a, b in zip(last, state, strict=True) if kind == "LSTM" else [(last, state)]:
        assert close(a[0], b)


@pytest.mark.parametrize("enforce_sorted", [True, False])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_run_as_each_alone(kind, enforce_sorted):
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    lengths = [5, 3, 3, 1] if enforce_sorted else [3, 1, 5, 3]
    parts = [core.randn(n, 3) for n in lengths]
    with core.no_grad():
        output, last = layer(rnn.pack_sequence(parts, enforce_sorted=enforce_sorted))
        padded, counts = rnn.pad_packed_sequence(output)
        assert counts.tolist() == lengths
        for i, part in enumerate(parts):
            alone, own = layer(part)
            assert close(padded[: lengths[i], i], alone)
            assert float(padded[lengths[i] :, i].abs().sum()) == 0
            for a, b in zip(last, own, strict=True) if kind == "LSTM" else [(last, own)]:
                assert close(a[:, i], b)


@pytest.mark.parametrize("name", ["double", "half", "long", "int", "short", "char", "byte"])
def test_conversions_of_packed_sequences(name):
    packed = rnn.pack_sequence([core.arange(3.0), core.ones(1)])
    converted = getattr(packed, name)()
    assert converted.data.dtype == getattr(packed.data, name)().dtype
    assert converted.data.tolist() == packed.data.tolist()
    assert converted.batch_sizes.tolist() == [2, 1, 1]


def test_packing_with_another_default_device():
    """The sizes of batches and the lengths stay on the CPU."""
    parts = [core.arange(6.0, device="cpu").view(3, 2), core.ones(1, 2, device="cpu")]
    with core.device("meta"):
        packed = rnn.pack_sequence(parts)
        assert packed.batch_sizes.tolist() == [2, 1, 1]
        padded, lengths = rnn.pad_packed_sequence(packed)
        assert lengths.tolist() == [3, 1]
        again = rnn.pack_padded_sequence(padded, [3, 1])
    assert again.data.tolist() == packed.data.tolist()


@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize(
    ("first", "second"),
    [("int64", "float32"), ("float32", "float64"), ("float64", "float32"), ("bool", "int64")],
)
def test_padded_sequences_have_the_dtype_of_the_first(first, second, padding_side):
    parts = [core.ones(2, dtype=getattr(core, first)), core.tensor([1.5]).to(getattr(core, second))]
    padded = rnn.pad_sequence(parts, batch_first=True, padding_side=padding_side)
    assert padded.dtype == parts[0].dtype
    number = parts[1].to(padded.dtype).item()
    assert padded.tolist() == [[1, 1], [0, number] if padding_side == "left" else [number, 0]]
    assert rnn.pack_sequence(parts).data.dtype == parts[0].dtype


def test_packing_and_padding():
    parts = [core.arange(6.0).view(3, 2), core.ones(1, 2), core.zeros(2, 2)]
    padded = rnn.pad_sequence(parts, batch_first=True, padding_value=-1)
    assert tuple(padded.shape) == (3, 3, 2)
    assert padded[1].tolist() == [[1, 1], [-1, -1], [-1, -1]]
    assert rnn.pad_sequence(parts, padding_side="left")[:, 1].tolist() == [[0, 0], [0, 0], [1, 1]]
    packed = rnn.pack_padded_sequence(padded, [3, 1, 2], batch_first=True, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert packed.sorted_indices.tolist() == [0, 2, 1]
    assert packed.data.tolist() == [[0, 1], [0, 0], [1, 1], [2, 3], [0, 0], [4, 5]]
    for a, b in zip(rnn.unpack_sequence(packed), parts, strict=True):
        assert a.tolist() == b.tolist()
    again, _ = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1, total_length=3)
    assert again.tolist() == padded.tolist()
    assert packed.double().data.dtype == core.float64
    assert pickle.loads(pickle.dumps(packed)).data.tolist() == packed.data.tolist()
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_padded_sequence(padded, [3, 1, 2], batch_first=True)
    with pytest.raises(RuntimeError, match="from 1 to 3, the length of the input"):
        rnn.pack_padded_sequence(padded, [4, 1, 0], batch_first=True)
    with pytest.raises(ValueError, match="needs at least 3, the length of the longest"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_dropout_is_between_layers():
    layer = nn.LSTM(3, 4, 2, dropout=0.5)
    x = core.ones(5, 2, 3)
    with core.no_grad():
        assert not close(layer(x)[0], layer(x)[0])
        layer.eval()
        assert close(layer(x)[0], layer(x)[0])
    with pytest.warns(UserWarning, match="has no effect with one layer"):
        nn.GRU(3, 4, dropout=0.5)


def test_errors_of_recurrent_layers():
    layer = nn.LSTM(3, 4)
    x = core.zeros(5, 2, 3)
    with pytest.raises(RuntimeError, match="input_size=3"):
        layer(core.zeros(5, 2, 4))
    with pytest.raises(ValueError, match="needs 3, or 2 without a batch"):
        layer(core.zeros(3))
    with pytest.raises(RuntimeError, match=r"cell states of shape \(1, 2, 3\), needs \(1, 2, 4\)"):
        layer(x, (core.zeros(1, 2, 4), core.zeros(1, 2, 3)))
    with pytest.raises(ValueError, match="float64"):
        layer(x.double())
    with pytest.raises(ValueError, match="less than hidden_size"):
        nn.LSTM(3, 4, proj_size=4)
    with pytest.raises(ValueError, match="nonlinearity"):
        nn.RNN(3, 4, nonlinearity="sine")
    with pytest.raises(ValueError, match="positive"):
        nn.GRU(3, 0)
    with pytest.raises(RuntimeError, match="w_ih"):
        core.lstm_cell(core.zeros(2, 3), [core.zeros(2, 4)] * 2, core.zeros(16, 2), core.zeros(16, 4))


@pytest.mark.parametrize("layer", [nn.RNN, nn.GRU, nn.LSTM])
def test_sizes_of_layers_are_positive_integers(layer):
    for argument in ("input_size", "hidden_size", "num_layers"):
        for value, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), ("2", TypeError)):
            sizes = {"input_size": 2, "hidden_size": 3, argument: value}
            with pytest.raises(error, match=rf"{layer.__name__}\({argument}\)"):
                layer(**sizes)
    for argument in ("bias", "batch_first"):
        with pytest.raises(TypeError, match=rf"{layer.__name__}\({argument}\)"):
            layer(2, 3, **{argument: 1})
