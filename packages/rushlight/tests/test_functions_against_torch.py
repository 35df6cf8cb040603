"""nn.functional with its gradients, compared with PyTorch for the same inputs, if it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

Rng = np.random.Generator
# Each case has arrays, and a call f(nn.functional, *tensors) with these as tensors. Floating-point tensors get
# gradients.
Case = tuple[Callable[[Rng], list[np.ndarray]], Callable[..., Any]]


def normal(rng: Rng, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def positive(rng: Rng, *shape: int) -> np.ndarray:
    return rng.uniform(0.1, 3.0, shape).astype(np.float32)


def signs(rng: Rng, *shape: int) -> np.ndarray:
    return rng.choice([-1, 1], shape)


def normals(*shapes: tuple[int, ...]) -> Callable[[Rng], list[np.ndarray]]:
    return lambda rng: [normal(rng, *shape) for shape in shapes]


def _interpolations() -> dict[str, Case]:
    modes = {
        (2, 3, 7): ("nearest", "nearest-exact", "linear", "area"),
        (2, 3, 7, 5): ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
        (1, 2, 4, 5, 3): ("nearest", "nearest-exact", "trilinear", "area"),
    }
    cases: dict[str, Case] = {}
    for shape, names in modes.items():
        dims = len(shape) - 2
        sizes: list[dict[str, Any]] = [
            {"size": 4},
            {"size": [9, 3, 6][:dims]},
            {"scale_factor": 2},
            {"scale_factor": [1.3, 0.7, 2.6][:dims]},
            {"scale_factor": 1.7, "recompute_scale_factor": True},
            {"size": shape[2:]},
        ]
        for mode in names:
            for size in sizes:
                corners = [None] if mode in ("nearest", "nearest-exact", "area") else [False, True]
                for align in corners:
                    options = {"mode": mode, "align_corners": align, **size}
                    cases[f"interpolate {shape} {options}"] = (
                        normals(shape),
                        lambda F, x, options=options: F.interpolate(x, **options),
                    )
    for mode in ("bilinear", "bicubic"):
        for align in (False, True):
            for size in ((3, 3), (15, 4), (7, 5), (1, 2)):
                options = {"mode": mode, "align_corners": align, "size": size, "antialias": True}
                cases[f"interpolate {options}"] = (
                    normals((2, 3, 7, 5)),
                    lambda F, x, options=options: F.interpolate(x, **options),
                )
    return cases


LOSSES: dict[str, Case] = {
    "hinge_embedding_loss": (
        lambda r: [normal(r, 3, 4), signs(r, 3, 4)],
        lambda F, x, t, **o: F.hinge_embedding_loss(x, t, 0.5, **o),
    ),
    "margin_ranking_loss": (
        lambda r: [normal(r, 6), normal(r, 6), signs(r, 6)],
        lambda F, x, y, t, **o: F.margin_ranking_loss(x, y, t, 0.3, **o),
    ),
    "cosine_embedding_loss": (
        lambda r: [normal(r, 6, 4), normal(r, 6, 4), signs(r, 6)],
        lambda F, x, y, t, **o: F.cosine_embedding_loss(x, y, t, 0.1, **o),
    ),
    "cosine_embedding_loss of vectors": (
        lambda r: [normal(r, 4), normal(r, 4), np.array(-1)],
        lambda F, x, y, t, **o: F.cosine_embedding_loss(x, y, t, -0.5, **o),
    ),
    "triplet_margin_loss": (
        normals((5, 4), (5, 4), (5, 4)),
        lambda F, x, y, z, **o: F.triplet_margin_loss(x, y, z, **o),
    ),
    "triplet_margin_loss swapped": (
        normals((5, 4), (5, 4), (5, 4)),
        lambda F, x, y, z, **o: F.triplet_margin_loss(x, y, z, 2.0, 3, swap=True, **o),
    ),
    "triplet_margin_with_distance_loss": (
        normals((5, 4), (5, 4), (5, 4)),
        lambda F, x, y, z, **o: F.triplet_margin_with_distance_loss(x, y, z, swap=True, **o),
    ),
    "triplet_margin_with_distance_loss own": (
        normals((5, 4), (5, 4), (5, 4)),
        lambda F, x, y, z, **o: F.triplet_margin_with_distance_loss(
            x, y, z, distance_function=lambda a, b: (a - b).abs().sum(-1), **o
        ),
    ),
    "poisson_nll_loss": (
        lambda r: [normal(r, 3, 4), positive(r, 3, 4)],
        lambda F, x, t, **o: F.poisson_nll_loss(x, t.detach(), **o),
    ),
    "poisson_nll_loss full": (
        lambda r: [positive(r, 3, 4), positive(r, 3, 4)],
        lambda F, x, t, **o: F.poisson_nll_loss(x, t.detach(), False, True, **o),
    ),
    "gaussian_nll_loss": (
        lambda r: [normal(r, 3, 4), normal(r, 3, 4), positive(r, 3, 4)],
        lambda F, x, t, v, **o: F.gaussian_nll_loss(x, t, v, full=True, **o),
    ),
    "gaussian_nll_loss of one variance a row": (
        lambda r: [normal(r, 3, 4), normal(r, 3, 4), positive(r, 3)],
        lambda F, x, t, v, **o: F.gaussian_nll_loss(x, t, v, eps=1.0, **o),
    ),
    "soft_margin_loss": (
        lambda r: [normal(r, 3, 4), signs(r, 3, 4)],
        lambda F, x, t, **o: F.soft_margin_loss(x, t, **o),
    ),
    "multi_margin_loss": (
        lambda r: [normal(r, 4, 5), r.integers(0, 5, 4)],
        lambda F, x, t, **o: F.multi_margin_loss(x, t, **o),
    ),
    "multi_margin_loss squared": (
        lambda r: [normal(r, 4, 5), r.integers(0, 5, 4), positive(r, 5)],
        lambda F, x, t, w, **o: F.multi_margin_loss(x, t, 2, 0.5, w.detach(), **o),
    ),
    "multi_margin_loss of a row": (
        lambda r: [normal(r, 5), r.integers(0, 5, ())],
        lambda F, x, t, **o: F.multi_margin_loss(x, t, **o),
    ),
    "multilabel_margin_loss": (
        lambda r: [normal(r, 3, 4), np.array([[3, 0, -1, 1], [-1, 0, 0, 0], [0, 1, 2, 3]])],
        lambda F, x, t, **o: F.multilabel_margin_loss(x, t, **o),
    ),
    "multilabel_margin_loss of a row": (
        lambda r: [normal(r, 4), np.array([1, 2, -1, 0])],
        lambda F, x, t, **o: F.multilabel_margin_loss(x, t, **o),
    ),
    "multilabel_soft_margin_loss": (
        lambda r: [normal(r, 3, 4), r.integers(0, 2, (3, 4)), positive(r, 4)],
        lambda F, x, t, w, **o: F.multilabel_soft_margin_loss(x, t, w.detach(), **o),
    ),
}


def _bags(rng: Rng) -> list[np.ndarray]:
    return [normal(rng, 7, 3), rng.integers(0, 7, 9), np.array([0, 4, 4, 9])]


def _ctc(F: Any, x: Any, targets: Any, lengths: Any, blank: int = 0, **options: Any) -> Any:
    # Compare only after log_softmax, because PyTorch's gradient assumes that the log-probabilities are normalised.
    return F.ctc_loss(F.log_softmax(x, -1), targets, lengths[0], lengths[1], blank, **options)


def _labels(rng: Rng) -> list[np.ndarray]:
    lengths = np.array([[6, 5, 6], [3, 2, 0]])
    return [normal(rng, 6, 3, 5), rng.integers(1, 5, (3, 3)), lengths]


def _joined_labels(rng: Rng) -> list[np.ndarray]:
    return [normal(rng, 6, 3, 5), rng.integers(0, 4, 6), np.array([[6, 5, 4], [3, 2, 1]])]


def _too_many_labels(rng: Rng) -> list[np.ndarray]:
    return [normal(rng, 6, 2, 5), np.array([[1, 1, 2], [2, 3, 4]]), np.array([[3, 5], [3, 3]])]


CASES: dict[str, Case] = {
    **_interpolations(),
    **{
        f"grid_sample {mode} {padding} {align} {len(shape) - 2}": (
            normals(shape, (2, *(3, 4, 2)[: len(shape) - 2], len(shape) - 2)),
            lambda F, x, g, mode=mode, padding=padding, align=align: F.grid_sample(
                x, g * 1.2, mode, padding, align
            ),
        )
        for shape in ((2, 3, 5, 4), (2, 2, 4, 3, 5))
        for mode in ("bilinear", "nearest", "bicubic")[: 6 - len(shape) + 1]
        for padding in ("zeros", "border", "reflection")
        for align in (False, True)
    },
    **{
        f"affine_grid {align} {dims}": (
            normals((2, dims, dims + 1)),
            lambda F, t, align=align, dims=dims: F.affine_grid(t, (2, 3, *(4, 5, 1)[:dims]), align),
        )
        for align in (False, True)
        for dims in (2, 3)
    },
    **{
        f"ctc_loss {reduction}": (
            _labels,
            lambda F, *a, r=reduction: _ctc(F, *a, reduction=r),
        )
        for reduction in ("mean", "sum", "none")
    },
    "ctc_loss of joined targets": (_joined_labels, lambda F, *a: _ctc(F, *a, blank=4)),
    "ctc_loss of impossible targets": (_too_many_labels, lambda F, *a: _ctc(F, *a, zero_infinity=True)),
    "ctc_loss of a sequence": (
        lambda r: [normal(r, 6, 5), np.array([1, 2, 2]), np.array([6, 3])],
        lambda F, *a: _ctc(F, *a),
    ),
    "ctc_loss of lists": (
        lambda r: [normal(r, 6, 2, 5), np.array([[1, 2], [3, 3]])],
        lambda F, x, t: F.ctc_loss(F.log_softmax(x, -1), t, [6, 5], (2, 2)),
    ),
    **{
        f"embedding_bag {mode} {options}": (
            _bags,
            lambda F, w, i, o, mode=mode, options=options: F.embedding_bag(i, w, o, mode=mode, **options),
        )
        for mode in ("sum", "mean", "max")
        for options in ({}, {"padding_idx": 2}, {"include_last_offset": True})
    },
    **{
        f"embedding_bag of rows {mode}": (
            lambda r: [normal(r, 7, 3), r.integers(0, 7, (4, 3))],
            lambda F, w, i, mode=mode: F.embedding_bag(i, w, mode=mode),
        )
        for mode in ("sum", "mean", "max")
    },
    "embedding_bag weighted": (
        lambda r: [normal(r, 7, 3), r.integers(0, 7, (4, 3)), normal(r, 4, 3)],
        lambda F, w, i, s: F.embedding_bag(i, w, per_sample_weights=s, mode="sum"),
    ),
    "bilinear": (normals((2, 4, 3), (2, 4, 5), (6, 3, 5), (6,)), lambda F, *a: F.bilinear(*a)),
    "instance_norm": (
        normals((2, 3, 4, 5), (3,), (3,)),
        lambda F, x, w, b: F.instance_norm(x, weight=w, bias=b),
    ),
    "local_response_norm": (normals((2, 5, 4)), lambda F, x: F.local_response_norm(x, 3, 0.5, 0.8, 2.0)),
    "local_response_norm of even size": (
        normals((2, 5, 2, 3, 2)),
        lambda F, x: F.local_response_norm(x, 4, 0.1),
    ),
    "lp_pool1d": (lambda r: [positive(r, 2, 3, 7)], lambda F, x: F.lp_pool1d(x, 3, 2, ceil_mode=True)),
    "lp_pool2d": (normals((2, 3, 7, 6)), lambda F, x: F.lp_pool2d(x, 2, (3, 2), 2)),
    "lp_pool3d": (lambda r: [positive(r, 3, 4, 5, 4)], lambda F, x: F.lp_pool3d(x, 1.5, 2)),
    **{
        f"max_unpool{dims}d {size}": (
            normals((2, 3, *(6, 8, 4)[:dims])),
            lambda F, x, dims=dims, size=size: getattr(F, f"max_unpool{dims}d")(
                *getattr(F, f"max_pool{dims}d")(x, 2, 2, return_indices=True), 2, output_size=size
            ),
        )
        for dims in (1, 2, 3)
        for size in (None, (7, 9, 5)[:dims])
    },
    "dropouts of nothing": (
        normals((2, 3, 4, 5, 2)),
        lambda F, x: F.dropout3d(F.alpha_dropout(F.feature_alpha_dropout(x, 0.5), 0.5), 0.0),
    ),
    "alpha_dropout of everything": (normals((3, 4)), lambda F, x: F.alpha_dropout(x, 1.0, True)),
    **{
        f"pad {mode} {len(amounts) // 2}": (
            normals(shape),
            lambda F, x, mode=mode, amounts=amounts: F.pad(x, amounts, mode),
        )
        for mode in ("constant", "reflect", "replicate", "circular")
        for shape, amounts in (
            ((2, 4), (3, 1)),
            ((2, 3, 4, 5), (2, 1, 0, 3)),
            ((2, 3, 2, 3, 2), (1, 1, 2, 0, 1, 1)),
        )
    },
    **{
        f"{name} {reduction}": (make, lambda F, *a, call=call, r=reduction: call(F, *a, reduction=r))
        for name, (make, call) in LOSSES.items()
        for reduction in ("mean", "sum", "none")
    },
}


def both(array: np.ndarray) -> tuple[Any, Any]:
    pair = rushlight.from_numpy(array.copy()), torch.from_numpy(array.copy())
    return tuple(t.requires_grad_() if t.is_floating_point() else t for t in pair)  # type: ignore[return-value]


def close(ours: Any, theirs: Any, what: str) -> None:
    assert (ours is None) == (theirs is None), what
    if theirs is not None:
        assert str(ours.dtype).rsplit(".", 1)[-1] == str(theirs.dtype).rsplit(".", 1)[-1], what
        np.testing.assert_allclose(
            ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-4, atol=2e-5, err_msg=what
        )


@pytest.mark.parametrize("name", CASES)
def test_function(name: str) -> None:
    make, call = CASES[name]
    rng = np.random.default_rng(20261121)
    ours, theirs = zip(*(both(array) for array in make(rng)), strict=True)
    results = call(rushlight.nn.functional, *ours)
    expected = call(torch.nn.functional, *theirs)
    if not isinstance(expected, tuple):
        results, expected = (results,), (expected,)
    assert len(results) == len(expected)
    for i, (a, b) in enumerate(zip(results, expected, strict=True)):
        close(a, b, f"result {i}")
    if not expected[0].requires_grad:
        return
    grad = np.asarray(normal(rng, *expected[0].shape), np.float32)
    results[0].backward(rushlight.from_numpy(grad.copy()))
    expected[0].backward(torch.from_numpy(grad.copy()))
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        close(a.grad, b.grad, f"gradient of tensor {i}")


# For each error, a call with a library's nn.functional and the library as arguments.
ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "interpolate without a size": lambda F, lib: F.interpolate(lib.ones(1, 1, 4)),
    "interpolate with both": lambda F, lib: F.interpolate(lib.ones(1, 1, 4), 2, 2),
    "interpolate with corners of nearest": lambda F, lib: F.interpolate(
        lib.ones(1, 1, 4), 2, align_corners=False
    ),
    "interpolate with another mode": lambda F, lib: F.interpolate(lib.ones(1, 1, 4), 2, mode="sharp"),
    "interpolate with a mode of other images": lambda F, lib: F.interpolate(
        lib.ones(1, 1, 4), 2, mode="bilinear"
    ),
    "interpolate with antialias of nearest": lambda F, lib: F.interpolate(
        lib.ones(1, 1, 4, 4), 2, antialias=True
    ),
    "interpolate to nothing": lambda F, lib: F.interpolate(lib.ones(1, 1, 4, 4), 0, mode="bilinear"),
    "interpolate with sizes of other images": lambda F, lib: F.interpolate(lib.ones(1, 1, 4), (2, 2)),
    "interpolate of integers": lambda F, lib: F.interpolate(lib.ones(1, 1, 4, dtype=lib.int64), 2),
    "triplet_margin_loss of other ranks": lambda F, lib: F.triplet_margin_loss(
        lib.ones(2, 3), lib.ones(2, 3), lib.ones(3)
    ),
    "gaussian_nll_loss of a negative variance": lambda F, lib: F.gaussian_nll_loss(
        lib.ones(3), lib.ones(3), -lib.ones(3)
    ),
    "multi_margin_loss with p 3": lambda F, lib: F.multi_margin_loss(lib.ones(2, 3), lib.tensor([0, 1]), p=3),
    "cosine_embedding_loss of other ranks": lambda F, lib: F.cosine_embedding_loss(
        lib.ones(2, 3), lib.ones(2, 3), lib.ones(2, 3)
    ),
    "ctc_loss of lengths beyond the input": lambda F, lib: F.ctc_loss(
        lib.zeros(4, 1, 3), lib.tensor([[1]]), lib.tensor([5]), lib.tensor([1])
    ),
    "bilinear of other widths": lambda F, lib: F.bilinear(lib.ones(2, 3), lib.ones(2, 4), lib.ones(5, 4, 3)),
    "instance_norm of one position": lambda F, lib: F.instance_norm(lib.ones(2, 3, 1)),
    "max_unpool2d of another size": lambda F, lib: F.max_unpool2d(
        lib.ones(1, 1, 2, 2), lib.zeros(1, 1, 2, 2, dtype=lib.int64), 2, output_size=(9, 9)
    ),
    "embedding_bag without offsets": lambda F, lib: F.embedding_bag(lib.tensor([0]), lib.ones(2, 3)),
    "embedding_bag of offsets from 1": lambda F, lib: F.embedding_bag(
        lib.tensor([0, 1]), lib.ones(2, 3), lib.tensor([1])
    ),
    "grid_sample of another batch": lambda F, lib: F.grid_sample(
        lib.ones(2, 1, 3, 3), lib.ones(1, 2, 2, 2), align_corners=True
    ),
    "grid_sample of another rank": lambda F, lib: F.grid_sample(
        lib.ones(2, 1, 3, 3), lib.ones(2, 2, 2, 3), align_corners=True
    ),
    "grid_sample with another mode": lambda F, lib: F.grid_sample(
        lib.ones(1, 1, 3, 3), lib.ones(1, 2, 2, 2), "cubic", align_corners=True
    ),
    "affine_grid of another shape": lambda F, lib: F.affine_grid(
        lib.ones(1, 2, 2), [1, 1, 2, 2], align_corners=True
    ),
    "a reduction that is none": lambda F, lib: F.soft_margin_loss(
        lib.ones(2), lib.ones(2), reduction="median"
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_of_the_same_class(name: str) -> None:
    call = ERRORS[name]
    with pytest.raises(Exception) as expected:
        call(torch.nn.functional, torch)
    with pytest.raises(expected.type):
        call(rushlight.nn.functional, rushlight)
