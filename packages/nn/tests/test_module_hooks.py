from __future__ import annotations

import copy
import pickle

import pytest

import rushlight_core as core
from rushlight_nn import Linear, Module, Sequential

HAS_AUTOGRAD = hasattr(getattr(core, "autograd", None), "Function")


class AddOne(Module):
    def forward(self, x, *, by=1):
        return x + by


def test_pre_hook_sees_and_replaces_arguments():
    module, seen = AddOne(), []
    module.register_forward_pre_hook(lambda m, args: seen.append((m, args)))
    assert module(1) == 2
    assert seen == [(module, (1,))]
    module.register_forward_pre_hook(lambda m, args: args[0] * 10)
    assert module(1) == 11
    module.register_forward_pre_hook(lambda m, args: (args[0] + 5,))
    assert module(1) == 16


def test_pre_hook_with_kwargs():
    module = AddOne()
    handle = module.register_forward_pre_hook(lambda m, a, k: (a, {"by": k["by"] + 1}), with_kwargs=True)
    assert module(1, by=2) == 4
    handle.remove()
    module.register_forward_pre_hook(lambda m, a, k: "nonsense", with_kwargs=True)
    with pytest.raises(RuntimeError, match="pair"):
        module(1, by=2)


def test_forward_hook_sees_and_replaces_the_output():
    module, seen = AddOne(), []
    module.register_forward_hook(lambda m, args, out: seen.append((args, out)))
    module.register_forward_hook(lambda m, args, kwargs, out: out * kwargs["by"], with_kwargs=True)
    assert module(1, by=3) == 12
    assert seen == [((1,), 4)]


def test_order_and_removal():
    module, order = AddOne(), []
    first = module.register_forward_hook(lambda *a: order.append("first"))
    module.register_forward_hook(lambda *a: order.append("second"))
    module.register_forward_hook(lambda *a: order.append("zeroth"), prepend=True)
    module(1)
    assert order == ["zeroth", "first", "second"]
    order.clear()
    first.remove()
    first.remove()
    module(1)
    assert order == ["zeroth", "second"]
    with module.register_forward_hook(lambda *a: order.append("within")):
        module(1)
    order.clear()
    module(1)
    assert order == ["zeroth", "second"]


def test_a_hook_may_remove_itself():
    module, calls = AddOne(), []

    def once(m, args, out):
        calls.append(out)
        handle.remove()

    handle = module.register_forward_hook(once)
    module(1)
    module(1)
    assert calls == [2]


def test_always_called_hooks_run_after_an_error():
    class Fails(Module):
        def forward(self, x):
            raise ValueError("original")

    module, calls = Fails(), []
    module.register_forward_hook(lambda *a: calls.append("ordinary"))
    module.register_forward_hook(lambda m, args, out: calls.append(out), always_call=True)
    with pytest.raises(ValueError, match="original"):
        module(1)
    assert calls == [None]
    module.register_forward_hook(lambda *a: 1 / 0, always_call=True)
    with pytest.raises(ValueError, match="original"), pytest.warns(UserWarning, match="ZeroDivisionError"):
        module(1)


def test_hooks_are_not_run_by_forward():
    module = AddOne()
    module.register_forward_hook(lambda *a: 100)
    assert module.forward(1) == 2
    assert module(1) == 100


def remember(module, args, output):
    return output + 1000


def test_hooks_survive_copies():
    module = AddOne()
    module.register_forward_hook(remember)
    assert copy.deepcopy(module)(1) == 1002
    assert pickle.loads(pickle.dumps(module))(1) == 1002
    other = copy.deepcopy(module)
    other.register_forward_hook(lambda *a: 5)
    assert module(1) == 1002


def test_a_module_without_hooks_shows_empty_tables():
    assert dict(AddOne()._forward_hooks) == {}
    with pytest.raises(TypeError, match="register_forward_hook"):
        AddOne()._forward_hooks[3] = remember
    assert dict(AddOne()._forward_hooks) == {}


@pytest.mark.skipif(HAS_AUTOGRAD, reason="an autograd provider is installed")
def test_backward_hooks_without_a_provider_say_what_to_install():
    module = Linear(2, 2)
    module.register_full_backward_hook(lambda *a: None)
    with pytest.raises(RuntimeError, match="rushlight-autograd"):
        module(core.ones(1, 2, requires_grad=True))


def test_hooks_on_an_inner_module_change_the_result_of_the_outer():
    net = Sequential(AddOne(), AddOne())
    net[0].register_forward_hook(remember)
    assert net(1) == 1003
