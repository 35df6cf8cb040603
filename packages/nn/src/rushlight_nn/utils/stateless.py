"""Modules as functions of their parameters and buffers: `rushlight.func.functional_call` and `stack_module_state`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_nn.layers.norm import _BatchNorm
from rushlight_nn.module import Module

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `module(*args, **kwargs)` with its parameters and buffers replaced during the call.

    Args:
        module: the module, which is left unchanged, even if the call raises an error.
        parameter_and_buffer_dicts: a dictionary that maps names of parameters and buffers, as in
            `named_parameters` and `named_buffers`, to tensors. Other parameters and buffers keep their
            values. A tensor with an unknown name becomes an attribute of the module during the call. A
            sequence of dictionaries is merged into one. In-place updates, for example of running statistics,
            change the given tensors.
        args: a tuple of arguments, or a single argument that is not a tuple.
        kwargs: keyword arguments.
        tie_weights: whether a parameter that has several names is replaced under all of its names.
        strict: whether the names of all parameters and buffers, and no other names, must be given.

    Raises:
        ValueError: a name is in two dictionaries, or one parameter would get different values.
        RuntimeError: `strict` is set, and names are missing or unknown.
        AttributeError: a name contains a submodule that does not exist.
        TypeError: a name refers to an attribute that is not a tensor, or the value of an unknown name is not a tensor.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> params = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0])}
        >>> torch.func.functional_call(layer, params, torch.tensor([1.0, 1.0]))
        tensor([6.])
    """
    given = _merged(parameter_and_buffer_dicts)
    slots = _slots(module)
    if strict:
        missing, unknown = sorted(set(slots) - set(given)), sorted(set(given) - set(slots))
        if missing or unknown:
            listed = [
                f"{kind} {names}" for kind, names in (("missing", missing), ("unknown", unknown)) if names
            ]
            raise RuntimeError(
                f"functional_call(strict=True): the names must match the parameters and buffers of"
                f" {type(module).__name__}: {' and '.join(listed)}"
            )
    arguments = args if isinstance(args, tuple) else () if args is None else (args,)
    if tie_weights:
        given = _tied(slots, given)
    slots.update({name: _new_slot(module, name, given[name]) for name in given if name not in slots})
    with _replaced(given, slots):
        return module(*arguments, **(kwargs or {}))


def _merged(dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError(
            "functional_call(parameter_and_buffer_dicts): must be a dictionary or a sequence of them, got "
            f"{type(dicts).__name__}"
        )
    merged: dict[str, Tensor] = {}
    for one in dicts:
        for name, value in one.items():
            if name in merged:
                raise ValueError(f"functional_call(): {name!r} is in two of the dictionaries")
            merged[name] = value
    return merged


_Slot = tuple[dict[str, Any], str]  # a table of a module, and a name in the table
_ABSENT = object()


def _slots(module: Module) -> dict[str, _Slot]:
    """Return, for every name of every parameter and buffer, the dictionary and the key under which it is stored."""
    found: dict[str, _Slot] = {}
    for path, child in module.named_modules(remove_duplicate=False):
        for table in (child._parameters, child._buffers):
            for name, value in table.items():
                if value is not None:
                    found[f"{path}.{name}" if path else name] = (table, name)
    return found


def _new_slot(module: Module, path: str, value: Any) -> _Slot:
    """Return the dictionary and the key under which a submodule stores `value` as a new attribute."""
    owner, _, name = path.rpartition(".")
    home = module.get_submodule(owner)
    if not name:
        raise KeyError(f"functional_call(): {path!r} ends in an empty name")
    former = getattr(home, name, None)
    if former is not None and not isinstance(former, Tensor):
        raise TypeError(
            f"functional_call(): the attribute {path!r} of {type(module).__name__} is "
            f"{type(former).__name__}, needs a tensor"
        )
    if not isinstance(value, Tensor):
        raise TypeError(f"functional_call(): the value of {path!r} is {type(value).__name__}, needs a tensor")
    return home.__dict__, name


def _tied(slots: dict[str, _Slot], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a copy of `given` in which each value is also stored under the other names of the same parameter."""
    by_tensor: dict[int, list[str]] = {}
    for name, (table, key) in slots.items():
        by_tensor.setdefault(id(table[key]), []).append(name)
    result = dict(given)
    for names in by_tensor.values():
        values = {id(given[n]): given[n] for n in names if n in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call(): {' and '.join(map(repr, names))} are names of one parameter, but their values differ\n"
                "hint: pass a value for only one of the names, or pass tie_weights=False"
            )
        for value in values.values():
            result.update(dict.fromkeys(names, value))
    return result


@contextmanager
def _replaced(given: dict[str, Tensor], slots: dict[str, _Slot]) -> Iterator[None]:
    former = {name: slots[name][0].get(slots[name][1], _ABSENT) for name in given}
    try:
        for name, value in given.items():
            table, key = slots[name]
            table[key] = value
        yield
    finally:
        for name, value in former.items():
            table, key = slots[name]
            if value is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = value


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Stack the parameters and the buffers of several modules along a new first dimension.

    `functional_call` with the slices at index i computes the output of module i, and `vmap` over all slices
    computes the outputs of all modules. The stacked parameters are leaf tensors, and require gradients if the
    parameters of the modules do.

    Args:
        models: modules of one class.

    Shape:
        - Outputs: dictionaries of tensors (number of modules, *), where * is the shape of the tensor in each module.

    Raises:
        RuntimeError: `models` is empty, or the modules differ in class, training mode or `requires_grad`.

    Example:
        >>> models = [nn.Linear(2, 3) for _ in range(4)]
        >>> params, buffers = torch.func.stack_module_state(models)
        >>> def call(params, buffers, x):
        ...     return torch.func.functional_call(models[0], (params, buffers), x)
        >>> torch.func.vmap(call, in_dims=(0, 0, None))(params, buffers, torch.randn(5, 2)).shape
        torch.Size([4, 5, 3])
    """
    modules = list(models)
    if not modules:
        raise RuntimeError("stack_module_state(models): got no modules, needs at least one")
    if len({type(m) for m in modules}) > 1:
        raise RuntimeError(
            f"stack_module_state(models): needs modules of one class, got {sorted({type(m).__name__ for m in modules})}"
        )
    if len({m.training for m in modules}) > 1:
        raise RuntimeError(
            "stack_module_state(models): got different modes, needs all in training mode or all in evaluation mode"
        )
    parameters = _stacked([dict(m.named_parameters()) for m in modules])
    buffers = _stacked([dict(m.named_buffers()) for m in modules])
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Remove the running statistics of all batch normalisation layers of a module, in place.

    With running statistics, all examples inside `vmap` would update the same statistics.

    Args:
        root: the module, which is returned.

    Example:
        >>> model = torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
        >>> model[1].track_running_stats
        False
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    result = {}
    for name in states[0]:
        tensors = [state[name] for state in states]
        wanted = {t.requires_grad for t in tensors}
        if len(wanted) > 1:
            raise RuntimeError(
                f"stack_module_state(models): {name!r} requires grad in some modules, not in others"
            )
        result[name] = core.stack(tensors).detach().requires_grad_(wanted.pop())
    return result
