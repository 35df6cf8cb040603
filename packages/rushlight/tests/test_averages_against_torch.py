"""Second-order steps and averaged models, compared with PyTorch from the same start, if it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from rushlight.optim import swa_utils

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "options",
    [
        {"lr": 0.5, "max_iter": 4},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 5},
    ],
)
def test_lbfgs(options: dict[str, Any]) -> None:
    histories = []
    for lib in (rushlight, torch):
        x = lib.tensor([-1.5, 2.0], dtype=lib.float64).requires_grad_()
        y = lib.tensor([[0.5]], dtype=lib.float64).requires_grad_()
        optimizer = lib.optim.LBFGS([x, y], **options)

        def closure(x: Any = x, y: Any = y, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2 + (y - x[1]).pow(2).sum()
            loss.backward()
            return loss

        losses = [float(optimizer.step(closure)) for _ in range(4)]
        histories.append([*losses, *x.detach().tolist(), float(y.detach())])
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["swa", "ema", "function"])
@pytest.mark.parametrize("use_buffers", [True, False])
def test_averaged_models(kind: str, use_buffers: bool) -> None:
    states = []
    for lib in (rushlight, torch):
        utils = lib.optim.swa_utils
        options: dict[str, Any] = {
            "swa": {},
            "ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "function": {"avg_fn": lambda old, new, count: old * 0.5 + new * 0.5},
        }[kind]
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3))
        averaged = utils.AveragedModel(model, use_buffers=use_buffers, **options)
        for step in range(3):
            with lib.no_grad():
                for i, tensor in enumerate((*model.parameters(), *model.buffers())):
                    tensor.fill_(step * step + i)
            averaged.update_parameters(model)
        batches = [lib.arange(8.0).reshape(4, 2) * scale for scale in (1, 2)]
        utils.update_bn(batches, averaged)
        states.append({key: value.tolist() for key, value in averaged.state_dict().items()})
    assert list(states[0]) == list(states[1])
    for key, value in states[0].items():
        np.testing.assert_allclose(value, states[1][key], rtol=1e-5, err_msg=key)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 4])
def test_swa_rates(strategy: str, epochs: int) -> None:
    rates = []
    for lib in (rushlight, torch):
        optimizer = lib.optim.SGD([lib.zeros(1).requires_grad_()], lr=1.0)
        schedule = lib.optim.swa_utils.SWALR(optimizer, 0.1, epochs, strategy)
        mine = []
        for _ in range(6):
            optimizer.step()
            schedule.step()
            mine.append(optimizer.param_groups[0]["lr"])
        rates.append(mine)
    np.testing.assert_allclose(rates[0], rates[1])
    assert swa_utils.SWALR is rushlight.optim.swa_utils.SWALR


def test_packed_sequences() -> None:
    array = np.random.default_rng(20261121).normal(size=(4, 5, 3)).astype(np.float32)
    lengths = [2, 5, 1, 5]
    theirs = torch.nn.utils.rnn
    ours = pack_padded_sequence(rushlight.from_numpy(array), lengths, True, enforce_sorted=False)
    expected = theirs.pack_padded_sequence(torch.from_numpy(array), lengths, True, enforce_sorted=False)
    assert ours.batch_sizes.tolist() == expected.batch_sizes.tolist()
    back, counts = pad_packed_sequence(ours, total_length=6)
    padded, others = theirs.pad_packed_sequence(expected, total_length=6)
    assert counts.tolist() == others.tolist()
    np.testing.assert_array_equal(back.numpy(), padded.numpy())
