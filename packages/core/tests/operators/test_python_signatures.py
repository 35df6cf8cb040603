"""`inspect.signature` and docstrings of operators agree with the entries."""

from __future__ import annotations

import inspect
import keyword
from typing import Any

import pytest

import rushlight_core as core
from rushlight_core.codegen.model import Op
from rushlight_core.codegen.python_signatures import names_of, self_index, synonyms
from rushlight_testing.operators import all_samples, flat, operators

# Arguments that bindings add to the arguments of the entry.
OF_BINDINGS = {"out", "layout", "pin_memory"}


def _callables() -> list[Any]:
    """Return (spelling, operators, whether it is a method) for every function and method that entries define."""
    found = []
    for name, group in names_of(operators()).items():
        visible = [op for op in group if "hidden" not in op.variants]
        for kind in ("function", "method"):
            if called := [op for op in visible if kind in op.variants]:
                found += [(word, called, kind == "method") for word in [name, *synonyms(name, visible)]]
    return [pytest.param(*one, id=f"{'Tensor.' * one[2]}{one[0]}") for one in found]


def _arguments(op: Op, method: bool) -> dict[str, Any]:
    """Return the names and defaults of an entry's arguments in Python; for a method, without the object itself."""
    arguments = list(op.schema.arguments)
    if method:
        own = next((a for a in arguments if a.name in ("input", "self")), arguments[0])
        arguments.remove(own)
    defaults = {}
    for a in arguments:
        name = a.name + "_" if keyword.iskeyword(a.name) else a.name
        nothing = a.default == () and a.name in op.none_is_default
        defaults[name] = inspect.Parameter.empty if a.required else None if nothing else a.default
    return defaults


@pytest.mark.parametrize(("name", "group", "method"), _callables())
def test_a_signature_is_that_of_an_entry(name: str, group: list[Op], method: bool) -> None:
    value = getattr(core.Tensor if method else core._C, name)
    if inspect.isfunction(value):
        return  # a wrapper that is written in Python, such as `nonzero`
    parameters = list(inspect.signature(value).parameters.values())
    assert len(parameters) == 0 or not method or parameters[0].name == "self"
    shown = {p.name: p.default for p in parameters[method:] if p.name not in OF_BINDINGS}
    entries = [_arguments(op, method) for op in group]
    assert list(shown) in [list(entry) for entry in entries]
    declared = next(entry for entry in entries if list(entry) == list(shown))
    entry = dict(declared)
    # An argument that another overload lacks may be left out: its default is shown as None.
    for n, default in shown.items():
        if (
            default is None
            and entry[n] is inspect.Parameter.empty
            and any(n not in other for other in entries)
        ):
            entry[n] = None
    starred = {p.name for p in parameters if p.kind is p.VAR_POSITIONAL}
    assert {n: d for n, d in shown.items() if n not in starred} == {
        n: d for n, d in entry.items() if n not in starred
    }
    assert len(shown) == max(map(len, entries))
    assert ("out" in shown or "out" in inspect.signature(value).parameters) == any(
        "out" in op.variants and not name.endswith("_") for op in group if _arguments(op, method) == declared
    )


def test_samples_bind_to_the_signature() -> None:
    """The samples of operators with one signature can be bound to the signature."""
    bound = 0
    for name, group in names_of(operators()).items():
        op = group[0]
        if len(group) > 1 or op.is_inplace or name != op.base or not {"function"} <= op.variants:
            continue
        signature = inspect.signature(getattr(core._C, name))
        known = signature.parameters
        for sample in all_samples(op):
            kwargs = {op.aliases.get(key, key): value for key, value in sample.kwargs.items()}
            if any(p.kind is p.VAR_POSITIONAL for p in known.values()) and set(kwargs) - set(known):
                continue
            signature.bind(*sample.args, **kwargs)
            bound += 1
    assert bound > 1000


def test_every_public_callable_has_a_signature() -> None:
    classes = (core.Tensor, core.Generator, core.UntypedStorage, core.Size, core.dtype)
    for owner in (core, core.linalg, core.fft, core.special, *classes):
        for name in dir(owner):
            value = getattr(owner, name)
            if name.startswith("_") or not callable(value) or isinstance(value, type):
                continue
            inspect.signature(value)


# In these methods, a bool may follow `dim`.
WITHOUT_SEPARATE_INTS = {"std", "var"}


def _only_a_list() -> list[Any]:
    """Return the methods whose only positional argument is a list of ints."""
    found = []
    for op in operators():
        positional = [
            a for i, a in enumerate(op.schema.arguments) if i != self_index(op) and not a.keyword_only
        ]
        if "method" in op.variants and [a.type.name.rstrip("?") for a in positional] == ["int[]"]:
            found.append(pytest.param(op, id=op.name))
    return found


@pytest.mark.parametrize("op", _only_a_list())
def test_a_method_with_only_a_list_takes_separate_ints(op: Op) -> None:
    if op.base in WITHOUT_SEPARATE_INTS:
        pytest.skip("another argument may follow the list")
    for sample, again in zip(all_samples(op), all_samples(op), strict=True):
        if len(sample.args) == 2 and isinstance(sample.args[1], (tuple, list)) and len(sample.args[1]) > 1:
            expected = getattr(sample.args[0], op.base)(sample.args[1], **sample.kwargs)
            got = getattr(again.args[0], op.base)(*again.args[1], **again.kwargs)
            assert str(got) == str(expected), sample.text
            assert [tuple(t.shape) for t in flat(got)] == [tuple(t.shape) for t in flat(expected)]


def test_signatures_of_methods_are_bound() -> None:
    assert str(inspect.signature(core.add)) == "(input, other, *, alpha=1, out=None)"
    assert str(inspect.signature(core.Tensor.add)) == "(self, /, other, *, alpha=1, out=None)"
    assert str(inspect.signature(core.ones(2).add_)) == "(other, *, alpha=1)"
    assert str(inspect.signature(core.ones(2).view)) == "(*size)"
    assert str(inspect.signature(core.Tensor.uniform_)) == "(self, /, from_=0, to=1, *, generator=None)"
    assert str(inspect.signature(core.ones(2).where)) == "(condition, other, *, out=None)"


def test_arguments_of_one_overload_may_be_left_out() -> None:
    assert str(inspect.signature(core.true_divide)) == "(input, other, *, rounding_mode=None, out=None)"
    assert str(inspect.signature(core.max)) == "(input, dim=None, keepdim=False, *, out=None)"


def test_a_docstring_lists_every_overload() -> None:
    text = core.max.__doc__
    assert "max(input: Tensor, *, out: Tensor | None = None) -> Tensor\n" in text
    assert "max(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor\n" in text
    assert "max(input: Tensor, dim: int, keepdim: bool = False," in text
    assert "-> (values: Tensor, indices: Tensor)" in text
    assert core.multiply.__doc__ == "Alias of `rushlight.mul`."
    assert core.Tensor.multiply_.__doc__ == "Alias of `Tensor.mul_`."
    assert not core.add.__doc__.startswith("add(")


def test_an_argument_whose_name_is_a_keyword_of_python() -> None:
    x = core.empty(100)
    assert x.uniform_(from_=2, to=3).min() >= 2
    assert x.uniform_(**{"from": 4, "to": 5}).min() >= 4
    assert x.random_(from_=7, to=8).tolist() == [7] * 100
