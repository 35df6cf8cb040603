"""Row-sparse gradients of layers, in clipping and in optimizers, compared with dense gradients; saving and loading."""

from __future__ import annotations

import io
import json
import pathlib

import pytest

import rushlight_autograd  # noqa: F401
import rushlight_core as core
import rushlight_nn as nn
from rushlight_nn import functional as F
from rushlight_nn import optim
from rushlight_nn.serialization import CheckpointError, load, save
from rushlight_nn.utils import clip_grad_norm_, clip_grad_value_

REFERENCE = json.loads((pathlib.Path(__file__).parent / "reference" / "sparse.json").read_text())
ROWS = [core.tensor([[3, 1], [1, 0]]), core.tensor([4, 4, 3]), core.tensor([0])]


def table(sparse: bool = True, **options) -> nn.Embedding:
    layer = nn.Embedding(5, 3, sparse=sparse, dtype=core.float64, **options)
    with core.no_grad():
        layer.weight.copy_(core.arange(15.0).reshape(5, 3) / 7 - 1)
    return layer


def run(layer: nn.Embedding, optimizer: optim.Optimizer, steps: int = 3) -> core.Tensor:
    for step in range(steps):
        optimizer.zero_grad()
        out = layer(ROWS[step])
        (out * out * (step + 1)).sum().backward()
        optimizer.step()
    return layer.weight.detach()


@pytest.mark.parametrize("padding", [None, 1])
def test_embedding(padding):
    a, b = table(padding_idx=padding), table(False, padding_idx=padding)
    for layer in (a, b):
        layer(ROWS[0]).pow(2).sum().backward()
    assert a.weight.grad.is_sparse
    assert a.weight.grad._nnz() == (4 if padding is None else 2)
    assert core.equal(a.weight.grad.to_dense(), b.weight.grad)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("padding", [None, 1])
def test_embedding_bag(mode, weighted, padding):
    if weighted and mode == "mean":
        pytest.skip("per_sample_weights need mode sum")
    grads = []
    for sparse in (True, False):
        layer = nn.EmbeddingBag(5, 3, mode=mode, sparse=sparse, padding_idx=padding, dtype=core.float64)
        with core.no_grad():
            layer.weight.copy_(core.arange(15.0).reshape(5, 3))
        factors = core.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=core.float64) if weighted else None
        out = layer(core.tensor([1, 2, 4, 1, 0]), core.tensor([0, 2, 2]), per_sample_weights=factors)
        (out * out).sum().backward()
        assert layer.weight.grad.is_sparse == sparse
        grads.append(layer.weight.grad.to_dense())
    assert core.allclose(*grads)


def test_embedding_bag_has_no_sparse_maximum():
    with pytest.raises(ValueError, match="max mode does not support sparse weights"):
        F.embedding_bag(core.tensor([[1]]), core.ones(2, 2), mode="max", sparse=True)


# Optimizers whose steps are the same with sparse and dense gradients if all rows have gradients.
SAME = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD maximize": lambda p: optim.SGD(p, lr=0.1, maximize=True),
    "SGD momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "SGD nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "SGD weight decay": lambda p: optim.SGD(p, lr=0.1, weight_decay=0.1),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adagrad maximize": lambda p: optim.Adagrad(p, lr=0.1, maximize=True),
}


@pytest.mark.parametrize("name", SAME)
def test_optimizers_against_dense_gradients(name):
    a, b = table(), table(False)
    assert core.allclose(run(a, SAME[name](a.parameters())), run(b, SAME[name](b.parameters())))


def test_sgd_with_sparse_and_dense_gradients_at_once():
    for momentum in (0, 0.9):
        results = []
        for sparse in (True, False):
            layer, plain = table(sparse), nn.Parameter(core.ones(3, dtype=core.float64))
            optimizer = optim.SGD([layer.weight, plain], lr=0.1, momentum=momentum)
            for step in range(3):
                optimizer.zero_grad()
                (layer(ROWS[step]) * plain).pow(2).sum().backward()
                optimizer.step()
            results.append((layer.weight.detach(), plain.detach()))
        assert all(core.allclose(x, y) for x, y in zip(*results, strict=True))


@pytest.mark.parametrize("name", REFERENCE)
def test_optimizers_against_recorded_values(name):
    make = {
        "SGD": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        "Adagrad": lambda p: optim.Adagrad(p, lr=0.1),
        "SparseAdam": lambda p: optim.SparseAdam(p, lr=0.1),
        "SparseAdam maximize": lambda p: optim.SparseAdam(p, lr=0.1, betas=(0.8, 0.9), maximize=True),
    }[name]
    layer = table()
    optimizer = make(list(layer.parameters()))
    assert core.allclose(run(layer, optimizer), core.tensor(REFERENCE[name], dtype=core.float64), rtol=1e-10)


def test_rows_without_a_gradient_stay():
    layer = table()
    before = layer.weight.detach().clone()
    optimizer = optim.SparseAdam(layer.parameters(), lr=0.1)
    layer(core.tensor([2])).sum().backward()
    optimizer.step()
    assert (layer.weight.detach() != before).any(1).tolist() == [False, False, True, False, False]
    assert optimizer.state[layer.weight]["step"] == 1


def test_lbfgs():
    def trained(sparse: bool) -> core.Tensor:
        layer = table(sparse)
        optimizer = optim.LBFGS(layer.parameters(), lr=0.1)

        def closure() -> core.Tensor:
            optimizer.zero_grad()
            loss = (layer(ROWS[0]) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return layer.weight.detach()

    assert core.equal(trained(True), trained(False))


def test_what_sparse_optimizers_refuse():
    layer = table(False)
    layer(ROWS[0]).sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        optim.SparseAdam(layer.parameters()).step()
    with pytest.raises(ValueError, match="requires dense parameter tensors"):
        optim.SparseAdam([core.eye(2).to_sparse().requires_grad_()])
    with pytest.raises(ValueError, match="does not support complex parameters: group 0"):
        optim.SparseAdam([core.ones(2, dtype=core.complex64).requires_grad_()])
    for bad in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}):
        with pytest.raises(ValueError, match="SparseAdam"):
            optim.SparseAdam([core.ones(1).requires_grad_()], **bad)
    layer = table()
    layer(ROWS[0]).sum().backward()
    with pytest.raises(RuntimeError, match="not compatible with sparse gradients"):
        optim.Adagrad(layer.parameters(), weight_decay=0.1).step()
    before = layer.weight.detach().clone()
    with pytest.raises(RuntimeError, match="please consider SparseAdam instead"):
        optim.Adam(layer.parameters()).step()
    assert core.equal(layer.weight.detach(), before)


def test_clipping():
    a, b = table(), table(False)
    for layer in (a, b):
        (layer(ROWS[0]).pow(2).sum() * 3).backward()
    for clip in (lambda p: clip_grad_norm_(p, 1.5), lambda p: clip_grad_value_(p, 0.25)):
        x, y = clip(a.parameters()), clip(b.parameters())
        assert x is y is None or core.allclose(x, y)
        assert a.weight.grad.is_sparse
        assert core.allclose(a.weight.grad.to_dense(), b.weight.grad)


def test_zeroing_in_place():
    layer = table()
    layer(ROWS[0]).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad._nnz() == 0


# --- files ---


def several() -> dict:
    coo = core.sparse_coo_tensor([[1, 0, 1]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (3, 2))
    return {
        "coo": coo,
        "coalesced": coo.coalesce(),
        "csr": core.eye(3, dtype=core.float64).to_sparse_csr(),
        "nothing": core.sparse_coo_tensor((2, 2)),
        "dense": core.ones(2),
    }


LEGACY = {"format": "pytorch", "_use_new_zipfile_serialization": False}


@pytest.mark.parametrize("options", [{}, {"format": "pytorch"}, LEGACY])
def test_files(options):
    buffer = io.BytesIO()
    given = several()
    save(given, buffer, **options)
    buffer.seek(0)
    found = load(buffer)
    assert found.keys() == given.keys()
    for name, wanted in given.items():
        assert found[name].layout is wanted.layout
        assert found[name].dtype == wanted.dtype
        assert core.equal(found[name].to_dense(), wanted.to_dense())
    assert not found["coo"].is_coalesced()
    assert found["coo"]._nnz() == 3
    assert found["coalesced"].is_coalesced()


def test_optimizer_states_with_sparse_buffers():
    layer = table()
    optimizer = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    run(layer, optimizer, 1)
    buffer = io.BytesIO()
    save(optimizer.state_dict(), buffer)
    buffer.seek(0)
    other = optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
    other.load_state_dict(load(buffer))
    momentum = other.state[layer.weight]["momentum_buffer"]
    assert momentum.is_sparse
    assert core.equal(momentum.to_dense(), optimizer.state[layer.weight]["momentum_buffer"].to_dense())


def test_a_file_whose_indices_are_out_of_range(tmp_path):
    with core.sparse.check_sparse_tensor_invariants(False):
        bad = core.sparse_coo_tensor([[7]], [1.0], (3,))
    for name, options in (
        ("a.pt", {}),
        ("b.pt", {"_use_new_zipfile_serialization": False}),
        ("c.safetensors", {}),
    ):
        save(bad, tmp_path / name, **options)
        with pytest.raises(CheckpointError, match="out of range"):
            load(tmp_path / name)
