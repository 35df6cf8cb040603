"""`_foreach_*`: operators on lists of tensors, as optimizers of other libraries call them."""

from __future__ import annotations

import pytest

import rushlight_core as rl


def lists() -> tuple[list[rl.Tensor], list[rl.Tensor]]:
    return [rl.tensor([1.0, 4.0]), rl.tensor([[9.0]])], [rl.tensor([2.0, 2.0]), rl.tensor([[3.0]])]


def values(tensors: list[rl.Tensor]) -> list[float]:
    return [x for t in tensors for x in t.flatten().tolist()]


def test_each_gets_a_number_its_own_number_or_its_own_tensor() -> None:
    a, b = lists()
    assert values(rl._foreach_add(a, 1.0)) == [2.0, 5.0, 10.0]
    assert values(rl._foreach_mul(a, [2.0, 3.0])) == [2.0, 8.0, 27.0]
    assert values(rl._foreach_sub(a, b)) == [-1.0, 2.0, 6.0]
    assert values(rl._foreach_div(a, rl.tensor(2.0))) == [0.5, 2.0, 4.5]
    assert values(rl._foreach_add(a, b, alpha=2)) == [5.0, 8.0, 15.0]
    assert values(rl._foreach_sqrt(a)) == [1.0, 2.0, 3.0]
    assert values(rl._foreach_maximum(a, b)) == [2.0, 4.0, 9.0]
    assert values(rl._foreach_clamp_max(a, 4.0)) == [1.0, 4.0, 4.0]
    assert values(rl._foreach_pow(a, 2.0)) == [1.0, 16.0, 81.0]
    assert values(rl._foreach_pow(2.0, [rl.tensor([3.0])])) == [8.0]
    assert values(rl._foreach_addcmul(a, b, b, 0.5)) == [3.0, 6.0, 13.5]
    assert values(rl._foreach_addcdiv(a, b, b, [1.0, 2.0])) == [2.0, 5.0, 11.0]
    assert values(rl._foreach_lerp(a, b, 0.5)) == [1.5, 3.0, 6.0]
    assert values(rl._foreach_norm([rl.tensor([3.0, 4.0])])) == [5.0]
    copies = rl._foreach_clone(a)
    assert values(copies) == values(a) == [1.0, 4.0, 9.0]
    assert all(x.data_ptr() != y.data_ptr() for x, y in zip(copies, a, strict=True))


def test_in_place() -> None:
    a, b = lists()
    before = [t.data_ptr() for t in a]
    assert rl._foreach_mul_(a, 2.0) is a
    rl._foreach_add_(a, b, alpha=-1.0)
    rl._foreach_addcmul_(a, b, b, value=1.0)
    rl._foreach_sqrt_(a)
    assert values(a) == pytest.approx([2.0, 10**0.5, 24**0.5])
    rl._foreach_copy_(a, b)
    assert values(a) == values(b)
    rl._foreach_maximum_(a, 2.5)
    assert values(a) == [2.5, 2.5, 3.0]
    rl._foreach_zero_(a)
    assert values(a) == [0.0, 0.0, 0.0]
    assert [t.data_ptr() for t in a] == before


def test_wrong_calls() -> None:
    a, b = lists()
    with pytest.raises(RuntimeError, match="lists of lengths 2 and 1"):
        rl._foreach_add(a, b[:1])
    with pytest.raises(TypeError, match="operands"):
        rl._foreach_add(a)
    with pytest.raises(AttributeError, match="_foreach_no_such"):
        rl._foreach_no_such
