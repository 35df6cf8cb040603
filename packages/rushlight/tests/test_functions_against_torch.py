"""nn.functional with its gradients: what PyTorch computes from the same inputs, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

Rng = np.random.Generator
# Of each case the arrays, and a call of them as tensors: f(nn.functional, *tensors). Floating ones get gradients.
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
CASES: dict[str, Case] = {
    **_interpolations(),
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


# Of each error the call, with a library's nn.functional and the library.
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
