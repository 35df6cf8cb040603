"""Hooks for saved tensors, and checkpointing, which uses such hooks."""

from __future__ import annotations

import gc
import weakref

import pytest
from autograd_samples import leaf, ones

import rushlight_core as core
from rushlight_autograd import backward, grad, gradgradcheck
from rushlight_autograd.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)
from rushlight_autograd.graph import save_on_cpu, saved_tensors_hooks


def identity(x):
    return x


def test_hooks_see_what_is_saved_and_what_they_return_is_used() -> None:
    x, w = leaf(3), leaf(3)
    seen = []

    def pack(tensor):
        assert tensor is x or tensor is w
        assert not core.is_grad_enabled()
        seen.append(tensor.tolist())
        return tensor * 10

    with saved_tensors_hooks(pack, lambda packed: packed / 5):
        y = x * w
    assert seen == [w.tolist(), x.tolist()] or seen == [x.tolist(), w.tolist()]
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * v for v in w.tolist()])


def test_arguments_are_packed_themselves_and_results_without_history() -> None:
    x = leaf(3)
    seen = []
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], identity):
        h = x * 2
        y = h.square()
        z = h.exp()
    assert [t is h for t in seen] == [True, False]
    assert not seen[1].requires_grad
    assert grad((y + z).sum(), x)[0].tolist() == pytest.approx((8 * x + 2 * z).tolist())


def test_a_hook_must_not_write_to_what_it_packs() -> None:
    x = leaf(3)
    for write in (lambda t: t.detach().mul_(2), lambda t: t.data.untyped_storage().fill_(0) and t):
        for operator in (lambda h: h.square(), lambda h: h.exp()):
            with saved_tensors_hooks(write, identity):
                h = x * 2
                with pytest.raises(RuntimeError, match="modifying its input in place"):
                    operator(h)


def test_arguments_and_results_keep_their_place_in_the_graph() -> None:
    def f(x, y):
        with saved_tensors_hooks(identity, identity):
            return (x * y).tanh() * x

    gradgradcheck(f, [leaf(3), leaf(3)])


def test_hooks_nest_and_end() -> None:
    x = leaf(2)
    calls = []

    def named(name):
        return saved_tensors_hooks(lambda t: (calls.append(name), t)[1], identity)

    with named("outer"):
        with named("inner"):
            x.exp()
        x.exp()
        with pytest.raises(ZeroDivisionError), named("left by an error"):
            1 / 0
        x.exp()
    x.exp()
    assert calls == ["inner", "outer", "outer"]


def test_hooks_that_fail() -> None:
    x = leaf(2)

    def fails(_):
        raise KeyError("packed")

    with pytest.raises(KeyError, match="packed"), saved_tensors_hooks(fails, identity):
        x.exp()
    with saved_tensors_hooks(identity, fails):
        y = x.exp()
    with pytest.raises(KeyError, match="packed"):
        y.backward(ones(x))
    with saved_tensors_hooks(identity, lambda t: t[:1]):
        y = x.exp()
    with pytest.raises(RuntimeError, match=r"shape \[2\]|shape \(2,\)"):
        y.backward(ones(x))
    with saved_tensors_hooks(identity, lambda _: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook"):
        y.backward(ones(x))
    with pytest.raises(TypeError, match="callable"), saved_tensors_hooks(1, 2):
        pass


def test_what_was_packed_is_let_go_with_the_graph() -> None:
    class Kept:
        pass

    x = leaf(2)
    alive = []

    def pack(tensor):
        kept = Kept()
        kept.tensor = tensor
        alive.append(weakref.ref(kept))
        return kept

    with saved_tensors_hooks(pack, lambda kept: kept.tensor):
        y = x.exp().exp()
    assert all(ref() is not None for ref in alive)
    y.backward(ones(x))
    assert all(ref() is None for ref in alive)
    del y
    gc.collect()


def test_save_on_cpu_changes_nothing_on_the_cpu() -> None:
    x = leaf(3)
    with save_on_cpu():
        y = x.exp()
    y.backward(ones(x))
    assert x.grad.tolist() == pytest.approx(x.exp().tolist())


# --- checkpointing ---


def noisy(x, w, keep=None):
    h = core.dropout(x @ w, 0.5, True)
    if keep is not None:
        keep.append(h)
    return h.tanh().exp()


@pytest.mark.parametrize("use_reentrant", [None, False, True])
def test_a_checkpoint_gives_the_same_gradients(use_reentrant) -> None:
    x, w = leaf(4, 3), leaf(3, 5)
    core.manual_seed(5)
    want = grad(noisy(x, w).sum(), [x, w])
    core.manual_seed(5)
    y = checkpoint(noisy, x, w, use_reentrant=use_reentrant)
    core.rand(7)  # advances the random stream before the backward pass
    before = core.get_rng_state().tolist()
    y.sum().backward()
    assert core.get_rng_state().tolist() == before
    for leaf_, g in zip((x, w), want, strict=True):
        assert leaf_.grad.tolist() == g.tolist()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_that_keeps_no_state_draws_new_numbers(use_reentrant) -> None:
    x = ones(leaf(5)).requires_grad_()
    core.manual_seed(5)
    first = core.rand(5)
    core.rand(7)
    second, following = core.rand(5), core.rand(3)
    core.manual_seed(5)
    y = checkpoint(
        lambda x: x * core.rand(5), x, use_reentrant=use_reentrant, preserve_rng_state=False, early_stop=False
    )
    assert y.tolist() == first.tolist()
    core.rand(7)
    (slope,) = grad(y.sum(), x) if not use_reentrant else (y.sum().backward(), x.grad)[1:]
    assert slope.tolist() == second.tolist()
    assert core.rand(3).tolist() == following.tolist()


AUTOCAST_SETTINGS = [
    {"dtype": core.bfloat16},
    {"dtype": core.float16},
    {"dtype": core.bfloat16, "cache_enabled": False},
    {"enabled": False},
]


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("settings", AUTOCAST_SETTINGS)
def test_a_checkpoint_gives_the_same_gradients_with_autocast(use_reentrant, settings) -> None:
    x, w = leaf(4, 3, dtype=core.float32), leaf(3, 3, dtype=core.float32)

    def product(x):
        return (x @ w).sin()

    with core.amp.autocast("cpu", **settings):
        want = grad(product(x).sin().sum(), [x, w])
        y = checkpoint_sequential([product, core.sin], 2, x, use_reentrant=use_reentrant)
    y.sum().backward()
    for leaf_, g in zip((x, w), want, strict=True):
        assert leaf_.grad.dtype is core.float32
        assert leaf_.grad.tolist() == g.tolist()


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("backward_inside", [False, True])
@pytest.mark.parametrize("settings", AUTOCAST_SETTINGS)
def test_a_checkpoint_is_computed_again_with_the_same_autocast(
    use_reentrant, backward_inside, settings
) -> None:
    x, factor = leaf(3, 3, dtype=core.float32), core.ones(3, 3)
    seen = []

    def product(x):
        scale = factor @ factor
        seen.append((scale.dtype, core.is_autocast_enabled("cpu"), core.is_autocast_cache_enabled()))
        return x.exp() * scale

    with core.amp.autocast("cpu", **settings):
        y = checkpoint(product, x, use_reentrant=use_reentrant)
    other = core.float16 if settings.get("dtype") is core.bfloat16 else core.bfloat16
    with core.amp.autocast("cpu", dtype=other, enabled=backward_inside):
        y.sum().backward()
        assert core.is_autocast_enabled("cpu") is backward_inside
        assert core.get_autocast_dtype("cpu") is (other if backward_inside else core.bfloat16)
    assert not core.is_autocast_enabled("cpu")
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0][0] is settings.get("dtype", core.float32)


def test_context_fn_may_change_autocast() -> None:
    x = leaf(3, 3, dtype=core.float32)
    seen = []

    def product(x):
        seen.append((x @ x).dtype)
        return (x @ x).exp()

    def off():
        return tuple(core.amp.autocast("cpu", enabled=False) for _ in range(2))

    with core.amp.autocast("cpu"):
        y = checkpoint(product, x, use_reentrant=False, context_fn=off)
    y.sum().backward()
    assert seen == [core.float32] * 2


def test_a_checkpoint_keeps_nothing_but_its_arguments() -> None:
    x, w = leaf(4, 3), leaf(3, 5)
    kept = []
    y = checkpoint(noisy, x, w, keep=kept)
    inner = weakref.ref(kept.pop())
    assert inner() is None
    y.sum().backward()


def test_a_checkpoint_is_differentiated_twice() -> None:
    gradgradcheck(lambda x, y: checkpoint(lambda x, y: (x * y).tanh() * x, x, y), [leaf(3), leaf(3)])


def test_a_retained_checkpoint_runs_again_and_again() -> None:
    x = leaf(3)
    runs = []
    y = checkpoint(lambda x: (runs.append(1), x.exp().exp())[1], x)
    for times in (1, 2, 3):
        y.backward(ones(x), retain_graph=True)
        assert len(runs) == 1 + times
    assert x.grad.tolist() == pytest.approx((3 * x.exp() * x.exp().exp()).tolist())


def test_a_checkpoint_stops_early_unless_told_otherwise() -> None:
    x, runs = leaf(3), []

    def function(x):
        y = x.exp()  # saves its result
        runs.append(1)  # after the last operator that is needed
        return y + 1

    def again(**options) -> int:
        runs.clear()
        checkpoint(function, x, **options).sum().backward()
        return len(runs) - 1

    assert again() == 0
    assert again(early_stop=False) == 1
    with set_checkpoint_early_stop(False):
        assert again() == 1
        with set_checkpoint_early_stop(True):
            assert again(early_stop=False) == 0
    assert again() == 0


def test_checkpoints_nest() -> None:
    x = leaf(3)

    def inner(x):
        return x.exp().sin()

    y = checkpoint(lambda x: checkpoint(inner, x).exp(), x)
    (got,) = grad(y.sum(), x)
    (want,) = grad(inner(x).exp().sum(), x)
    assert got.tolist() == want.tolist()


def test_a_function_that_changes_its_mind() -> None:
    x = leaf(4)
    sizes = iter([4, 2])
    y = checkpoint(lambda x: x[: next(sizes)].exp().sum(), x)
    with pytest.raises(CheckpointError, match=r"of shape \(4,\), and .* of shape \(2,\)"):
        y.backward()
    deeds = iter([True, False])
    y = checkpoint(lambda x: x.exp() if next(deeds) else x + 1, x)
    with pytest.raises(CheckpointError, match="fewer tensors"):
        y.sum().backward()


def test_wrong_arguments() -> None:
    x = leaf(2)
    with pytest.raises(ValueError, match="takes no keyword arguments, got keep"):
        checkpoint(noisy, x, keep=[], use_reentrant=True)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(identity, x, determinism_check="maybe")
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([identity], 2, x)


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_a_sequence(segments) -> None:
    x = leaf(3)
    chain = [core.exp, core.sin, core.tanh, core.cos, core.sigmoid]
    y = checkpoint_sequential(chain, segments, x)
    z = x
    for f in chain:
        z = f(z)
    assert y.tolist() == z.tolist()
    assert grad(y.sum(), x)[0].tolist() == grad(z.sum(), x)[0].tolist()


@pytest.mark.parametrize(("segments", "computed_twice"), [(1, 0), (2, 3), (3, 4)])
def test_all_but_the_last_segment_are_computed_again(segments, computed_twice) -> None:
    calls = [0] * 7

    def step(i):
        def run(x):
            calls[i] += 1
            return x * x

        return run

    checkpoint_sequential([step(i) for i in range(7)], segments, leaf(2)).sum().backward()
    assert calls == [2] * computed_twice + [1] * (7 - computed_twice)


def test_an_error_in_the_function_is_the_caller_s() -> None:
    x = leaf(2)
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x)
    turns = iter([lambda x: x.exp()])
    y = checkpoint(lambda x: next(turns)(x), x)
    with pytest.raises(StopIteration):
        backward(y.sum())
