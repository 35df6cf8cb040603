"""Modules of PyTorch from which other libraries import helpers, and the helpers."""

from __future__ import annotations

import gc
import importlib
import pickle
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight._utils import (
    ExceptionWrapper,
    _flatten_dense_tensors,
    _get_device_index,
    _reorder_tensors_as,
    _take_tensors,
    _unflatten_dense_tensors,
    render_call,
)
from rushlight.utils.module_tracker import ModuleTracker
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

# The names that other libraries import, by module.
IMPORTED = {
    "_jit_internal": "BroadcastingList2 Final List Optional Tuple boolean_dispatch export ignore is_scripting unused",
    "_tensor": "Tensor",
    "_utils": "ExceptionWrapper _element_size _flatten_dense_tensors _get_device_index _unflatten_dense_tensors",
    "_vmap_internals": "_vmap vmap",
    "_weights_only_unpickler": "_add_safe_globals _get_safe_globals",
    "backends.mha": "get_fastpath_enabled set_fastpath_enabled",
    "cuda.random": "get_rng_state initial_seed manual_seed manual_seed_all set_rng_state",
    "nested": "as_nested_tensor nested_tensor to_padded_tensor",
    "nn.common_types": "_ratio_any_t _size_1_t _size_2_opt_t _size_2_t _size_3_t _size_any_t",
    "nn.grad": "conv1d_input conv1d_weight conv2d_input conv2d_weight conv3d_input conv3d_weight",
    "nn.parallel.data_parallel": "DataParallel data_parallel",
    "quantization": "DeQuantStub QuantStub get_default_qconfig quantize_dynamic",
    "return_types": "max topk linalg_svd",
    "utils._python_dispatch": "TorchDispatchMode _disable_current_modes is_traceable_wrapper_subclass",
    "utils.deterministic": "fill_uninitialized_memory",
    "utils.module_tracker": "ModuleTracker",
    "utils.weak": "TensorWeakRef WeakIdKeyDictionary WeakIdRef WeakTensorKeyDictionary",
}


@pytest.mark.parametrize("name", IMPORTED)
def test_names_can_be_imported(name: str) -> None:
    module = importlib.import_module(f"rushlight.{name}")
    for each in IMPORTED[name].split():
        getattr(module, each)
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module or name == "nn.parallel.data_parallel"  # here a function has this name
    with pytest.raises((AttributeError, ImportError), match="no_such_name"):
        exec(f"from rushlight.{name} import no_such_name")


def test_named_tuples_of_operators() -> None:
    result = torch.max(torch.tensor([[1.0, 3.0], [4.0, 2.0]]), 1)
    assert type(result) is torch.return_types.max
    restored = pickle.loads(pickle.dumps(result))
    assert type(restored) is torch.return_types.max
    assert restored.indices.tolist() == [1, 0]
    assert repr(result) == "torch.return_types.max(\nvalues=tensor([3., 4.]),\nindices=tensor([1, 0]))"
    assert {kind.__name__ for kind in torch.return_types.all_return_types} >= {
        "sort",
        "linalg_eigh",
        "slogdet",
    }
    for kind in torch.return_types.all_return_types:
        assert getattr(torch.return_types, kind.__name__) is kind


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions(dims: int) -> None:
    of_input, of_weight = (getattr(torch.nn.grad, f"conv{dims}d_{name}") for name in ("input", "weight"))
    batch = torch.randn(2, 4, *[8] * dims, requires_grad=True)
    weight = torch.randn(6, 2, *[3] * dims, requires_grad=True)
    for x, options in (
        (batch, {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
        (batch[0], {"stride": 2, "groups": 2}),
        (batch, {"padding": "same", "groups": 2}),
        (batch, {"padding": [1] * dims, "stride": (2,) * dims, "groups": 2}),
    ):
        output = getattr(torch.nn.functional, f"conv{dims}d")(x, weight, **options)
        grad = torch.randn(output.shape)
        expected = torch.autograd.grad(output, (x, weight), grad)
        torch.testing.assert_close(of_input(x.shape, weight, grad, **options), expected[0])
        found = of_weight(x, weight.shape, grad, **options)
        torch.testing.assert_close(found, expected[1])
        (again,) = torch.autograd.grad(found.square().sum(), x)  # the gradients are themselves differentiable
        assert again.shape == x.shape
        with torch.no_grad():
            assert not of_input(x.shape, weight, grad, **options).requires_grad
        with pytest.raises(RuntimeError, match="grad_output must have"):
            of_input(x.shape, weight, grad[:1], **options)
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        of_input(batch.shape, weight.double(), torch.randn(2, 6, *[6] * dims), groups=2)


def test_flat_tensors() -> None:
    tensors = [torch.randn(2, 3), torch.randn(()), torch.randn(4).expand(2, 4), torch.randn(0)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.shape == (15,)
    parts = _unflatten_dense_tensors(flat, tensors)
    assert all(torch.equal(part, tensor) for part, tensor in zip(parts, tensors, strict=True))
    flat.zero_()
    assert not parts[0].any()  # the parts are views


def test_lists_of_tensors_of_one_dtype() -> None:
    a, b, c, d = torch.ones(4), torch.ones(2).double(), torch.ones(4), torch.ones(100)
    taken = [[id(tensor) for tensor in group] for group in _take_tensors([a, b, c, d], 32)]
    assert taken == [[id(a), id(c)], [id(d)], [id(b)]]
    assert [t.dtype for t in _reorder_tensors_as([a, c, b], [b, a, c])] == [b.dtype, a.dtype, c.dtype]


def test_errors_of_other_threads() -> None:
    try:
        raise KeyError("nothing")
    except KeyError:
        wrapped = ExceptionWrapper(where="in a worker")
    with pytest.raises(KeyError, match=r"Caught KeyError in a worker(.|\n)*nothing"):
        wrapped.reraise()
    assert render_call(len, ["a"], {"b": 1}) == "len('a', b=1)"


def test_numbers_of_devices() -> None:
    assert _get_device_index("cuda:1") == _get_device_index(1) == 1
    assert _get_device_index("cpu", allow_cpu=True) == -1
    for device in ("cpu", "cuda", None):
        with pytest.raises(ValueError, match="_get_device_index"):
            _get_device_index(device)


def test_weak_keys() -> None:
    x, y = torch.ones(2), torch.ones(2)
    names = WeakIdKeyDictionary({x: "x"})
    names[y] = "y"
    assert names[x] == "x"
    assert dict(names.items()).keys() == {x, y}
    assert len(names | {x: "other"}) == 2
    with pytest.raises(KeyError):
        names[torch.ones(2)]
    assert 3 not in names
    reference, other = WeakIdRef(x), WeakIdRef(x)
    assert reference == other
    assert reference != WeakIdRef(y)
    held = TensorWeakRef(x)
    copied = names.copy()
    del x
    gc.collect()
    assert held() is None
    assert reference != other  # both references are dead, so they cannot be known to refer to the same object
    assert list(names.values()) == list(copied.values()) == ["y"]
    itself = weakref.ref(names)
    del names
    assert itself() is None  # entries do not keep the dictionary
    with pytest.raises(TypeError, match="TensorWeakRef"):
        TensorWeakRef(3)  # type: ignore[arg-type]


def follow(library: Any, tracker: Any) -> list[Any]:
    seen: list[Any] = []

    class Probe(library.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append((sorted(tracker.parents), tracker.is_bw))
            return grad

    class Inner(library.nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x: Any) -> Any:
            return Probe.apply(x)

    model = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Sequential(Inner()), library.nn.ReLU())
    with tracker:
        for _ in range(2):
            model(library.ones(1, 2, requires_grad=True)).sum().backward()
            seen.append((sorted(tracker.parents), tracker.is_bw))
    return seen


def test_which_modules_run() -> None:
    seen = follow(torch, ModuleTracker())
    inside = ["Global", "Sequential", "Sequential.1", "Sequential.1.0"]
    assert seen == [(inside, False), (inside, True), (["Global"], False)] * 2


def test_which_modules_run_against_torch() -> None:
    theirs = pytest.importorskip("torch")
    tracker = importlib.import_module("torch.utils.module_tracker").ModuleTracker()
    assert follow(torch, ModuleTracker()) == follow(theirs, tracker)


def test_what_is_not_supported_says_so() -> None:
    with pytest.raises(NotImplementedError, match="pad_sequence"):
        torch.nested.nested_tensor([torch.ones(2)])
    with pytest.raises(NotImplementedError, match="quantised"):
        torch.quantization.quantize_dynamic(torch.nn.Linear(2, 2))

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        pass

    with pytest.raises(NotImplementedError, match="__torch_function__ of a class"):
        Mode()
    with torch.utils._python_dispatch._disable_current_modes() as modes:
        assert modes == []
    torch.utils.deterministic.fill_uninitialized_memory = False
    with pytest.warns(UserWarning, match="is not filled"):
        torch.utils.deterministic.fill_uninitialized_memory = True
    assert torch.utils.deterministic.fill_uninitialized_memory is False


def test_functions_chosen_by_a_flag() -> None:
    choose = torch._jit_internal.boolean_dispatch(
        "pair", 1, False, lambda x, pair=True: (x, x), lambda x, pair=False: x, None, "choose"
    )
    assert (choose(1), choose(1, True), choose(1, pair=True), choose(1, False)) == (1, (1, 1), (1, 1), 1)
    assert torch._jit_internal.boolean_dispatched[choose]["arg_name"] == "pair"


def test_data_parallel_calls_the_module() -> None:
    layer = torch.nn.Linear(2, 3)
    x = torch.randn(4, 2)
    assert torch.equal(torch.nn.parallel.data_parallel(layer, x), layer(x))
    assert torch.equal(torch.nn.parallel.data_parallel(layer, (x,), module_kwargs={}), layer(x))
    with pytest.raises(NotImplementedError, match="several GPUs"):
        torch.nn.parallel.data_parallel(layer, x, [0, 1])


def test_vmap_by_its_old_path() -> None:
    x = torch.randn(3, 2)
    assert torch.equal(torch._vmap_internals.vmap(torch.sum)(x), x.sum(1))
