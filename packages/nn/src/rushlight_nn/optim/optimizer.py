"""The base class of optimizers, with parameter groups, state and hooks."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from types import MethodType
from weakref import WeakSet

import rushlight_core as core
from rushlight_core import Tensor

from .._typing import Any
from ..hooks import HookTable, RemovableHandle
from ..parameter import zero_gradient

# The default value that marks a setting which every group must contain.
required: object = object()


_alive: WeakSet[Optimizer] = WeakSet()
_global_step_pre_hooks = HookTable()
_global_step_post_hooks = HookTable()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(optimizer, args, kwargs)` to run before each step of any optimizer, before its own hooks.

    If the hook returns a pair (args, kwargs), the step is called with these arguments.

    Args:
        hook: the function.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.optim.optimizer import register_optimizer_step_pre_hook
        >>> handle = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print(type(optimizer).__name__))
        >>> w = torch.zeros(1, requires_grad=True)
        >>> torch.optim.SGD([w]).step()
        SGD
        >>> handle.remove()
    """
    return _add_global_hook(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register `hook(optimizer, args, kwargs)` to run after each step of any optimizer, after its own hooks.

    Args:
        hook: the function.

    Returns:
        a handle whose `remove()` removes the hook.

    Example:
        >>> from rushlight.optim.optimizer import register_optimizer_step_post_hook
        >>> handle = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("stepped"))
        >>> w = torch.zeros(1, requires_grad=True)
        >>> torch.optim.SGD([w]).step()
        stepped
        >>> handle.remove()
    """
    return _add_global_hook(_global_step_post_hooks, hook)


def _add_global_hook(table: HookTable, hook: Any) -> RemovableHandle:
    for optimizer in list(_alive):
        optimizer._step_through_hooks()
    return table.add(hook)


class Optimizer:
    """The base class of optimizers.

    A subclass defines `step(closure=None)`, which updates the parameters of `param_groups` from their
    gradients. The subclass stores the state of a parameter in the dictionary `state[parameter]`.

    Args:
        params: tensors, (name, tensor) pairs, or parameter groups: dictionaries with an entry "params" and settings.
        defaults: default settings; a group that lacks a setting gets the default.

    Shape:
        - Parameters: (*), any shapes.

    Raises:
        TypeError: `params` is a tensor or contains something other than tensors.
        ValueError: there is no parameter, a parameter is in two groups or is not a leaf, or only some parameters have names.
        NotImplementedError: the subclass does not define `step` (raised when `step` is called).

    Example:
        >>> class SignDescent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p.sub_(p.grad.sign(), alpha=group["lr"])
        >>> w = torch.tensor([1.0, -3.0], requires_grad=True)
        >>> (w * w).sum().backward()
        >>> SignDescent([w], lr=0.5).step()
        >>> w.detach()
        tensor([ 0.5000, -2.5000])
    """

    state: defaultdict[Tensor, dict[str, Any]]
    param_groups: list[dict[str, Any]]
    defaults: dict[str, Any]

    # Options that states of older versions do not contain, and values with which the optimizer behaves as in these
    # versions.
    _later_options: Mapping[str, Any] = {
        "amsgrad": False, "capturable": False, "centered": False, "decoupled_weight_decay": False,
        "differentiable": False, "foreach": None, "fused": None, "line_search_fn": None, "maximize": False,
    }  # fmt: skip

    # Number of steps, or None if `step` does not count them. A scheduler warns if its first step precedes the optimizer's.
    _step_count: int | None = None

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}(params): got a tensor, needs an iterable of tensors or dictionaries\n"
                "hint: pass [tensor]"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}(params): got no parameters, needs at least one")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        self._come_to_life()

    # Groups -------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a parameter group: a dictionary with the parameters as "params" and their settings."""
        name = type(self).__name__
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{name}.add_param_group(param_group): got {type(param_group).__name__}, needs a dict"
            )
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, (set, frozenset)):
            raise TypeError(
                f"{name}(params): got a set, whose order changes from run to run\nhint: pass a list"
            )
        params = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    f"{name}(params): item {named.index(False)} has no name, but other items have names\n"
                    "hint: pass pairs of name and tensor for all items or for none"
                )
            group["param_names"] = [p[0] for p in params]
            params = [p[1] for p in params]
        for position, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise TypeError(f"{name}(params): item {position} is {type(param).__name__}, needs a tensor")
            if not (param.is_leaf or self.defaults.get("differentiable")):
                raise ValueError(
                    f"{name}(params): item {position} was computed from other tensors, needs a leaf"
                )
        for key, value in self.defaults.items():
            if value is required and key not in group:
                raise ValueError(f"{name}: a parameter group needs a value for {key!r}, which has no default")
            group.setdefault(key, value)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            warnings.warn(f"{name}: a parameter group holds the same tensor more than once", stacklevel=3)
        for other in self.param_groups:
            if not ids.isdisjoint(map(id, other["params"])):
                raise ValueError(f"{name}: a parameter appears in more than one group")
            if ("param_names" in other) != ("param_names" in group):
                raise ValueError(
                    f"{name}: parameters must have names in all parameter groups or in none, but only some "
                    "groups have names"
                )
        # "params" first, and then the settings in the order of `defaults`, as they are printed.
        group["params"] = params
        self.param_groups.append({"params": params, **{k: v for k, v in group.items() if k != "params"}})

    def _patch_step_function(self) -> None:
        """Do nothing, because step hooks need no preparation. Optimizers that wrap another optimizer call this method."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or fill them with zeros if `set_to_none` is False."""
        if set_to_none:
            for group in self.param_groups:
                for param in group["params"]:
                    param.grad = None
            return
        for group in self.param_groups:
            for param in group["params"]:
                zero_gradient(param)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters.

        If `closure` is given, it computes the gradients and returns the loss, which this method returns.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define step")

    # State --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the parameter groups as a dict. Indices replace the parameters.

        The tensors in the result are not copies: the optimizer continues to use and to change them.
        """
        for hook in self._hooks("_state_dict_pre_hooks"):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {
            numbers[id(key)] if isinstance(key, Tensor) else key: dict(value)
            if isinstance(value, dict)
            else value
            for key, value in self.state.items()
        }
        result = {"state": state, "param_groups": groups}
        for hook in self._hooks("_state_dict_post_hooks"):
            result = hook(self, result) or result
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that :meth:`state_dict` returned.

        The tensors in the state of a parameter are converted to the device and dtype of the parameter. The tensor `step`,
        the number of steps, keeps its dtype.

        Raises:
            ValueError: the parameter groups in the state do not match the groups of the optimizer. In this case, the
                optimizer is not changed.
        """
        state_dict = dict(state_dict)
        for hook in self._hooks("_load_state_dict_pre_hooks"):
            state_dict = hook(self, state_dict) or state_dict
        name = type(self).__name__
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"{name}.load_state_dict: got a state with {len(saved)} parameter groups, needs {len(self.param_groups)}"
            )
        params: dict[int, Tensor] = {}
        for position, (theirs, ours) in enumerate(zip(saved, self.param_groups, strict=True)):
            if len(theirs["params"]) != len(ours["params"]):
                raise ValueError(
                    f"{name}.load_state_dict: got {len(theirs['params'])} parameters in group {position} of the "
                    f"state, needs {len(ours['params'])}"
                )
            params.update(zip(theirs["params"], ours["params"], strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = {k: self._adopt(v, params[key], k) for k, v in value.items()}
            else:
                state[key] = deepcopy(value)
        groups = []
        for theirs, ours in zip(saved, self.param_groups, strict=True):
            group = deepcopy({key: value for key, value in theirs.items() if key != "params"})
            if "param_names" in ours and "param_names" not in group:
                group["param_names"] = ours["param_names"]
            groups.append({"params": ours["params"], **group})
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._hooks("_load_state_dict_post_hooks"):
            hook(self)

    def _adopt(self, value: Any, param: Tensor, key: str) -> Any:
        """Return a copy of a value of the state, with tensors converted to the device and dtype that `param` requires."""
        if isinstance(value, Tensor):
            value = value.detach()
            # A step counter stays float32: bfloat16 cannot count beyond 256.
            dtype = param.dtype if param.dtype.is_floating_point and key != "step" else value.dtype
            return value.to(device=param.device, dtype=dtype, copy=True)
        if isinstance(value, dict):
            return {k: self._adopt(v, param, key) for k, v in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self._adopt(v, param, key) for v in value)
        return deepcopy(value)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for group in self.param_groups:
            for key, value in self._later_options.items():
                if key in self.defaults:
                    group.setdefault(key, value)
        self._come_to_life()

    # Hooks --------------------------------------------------------------------------------------------------

    def _hooks(self, name: str) -> list[Any]:
        return list(self.__dict__.get(name, {}).values())

    def _add_hook(self, name: str, hook: Any, prepend: bool = False) -> RemovableHandle:
        return self.__dict__.setdefault(name, HookTable()).add(hook, prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run before every step. `args[0]` is the optimizer.

        If the hook returns a pair (args, kwargs), the step is called with these arguments.
        """
        return self._add_step_hook("_step_pre_hooks", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(optimizer, args, kwargs)` to run after every step."""
        return self._add_step_hook("_step_post_hooks", hook)

    def _add_step_hook(self, name: str, hook: Any) -> RemovableHandle:
        self._step_through_hooks()
        return self._add_hook(name, hook)

    def _step_through_hooks(self) -> None:
        # Replace `step` of this optimizer by a function that calls the hooks, so that optimizers without hooks are
        # not slower.
        if "step" not in self.__dict__:
            self.__dict__["step"] = MethodType(_step_with_hooks, self)

    def _come_to_life(self) -> None:
        _alive.add(self)
        if _global_step_pre_hooks or _global_step_post_hooks:
            self._step_through_hooks()

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer)` to run before :meth:`state_dict` reads the state."""
        return self._add_hook("_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)`, which runs after :meth:`state_dict` and may replace its result."""
        return self._add_hook("_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer, state_dict)`, which runs before a state is loaded and may replace it."""
        return self._add_hook("_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Register `hook(optimizer)` to run after a state has been loaded."""
        return self._add_hook("_load_state_dict_post_hooks", hook, prepend)

    def __repr__(self) -> str:
        groups = []
        for position, group in enumerate(self.param_groups):
            settings = "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
            groups.append(f"\nParameter Group {position}\n{settings}")
        return f"{type(self).__name__} ({''.join(groups)})"

    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        if closure is None:
            return None
        with core.enable_grad():
            return closure()


def _step_with_hooks(optimizer: Optimizer, *given: Any, **kwargs: Any) -> Any:
    args = (optimizer, *given)  # hooks get the arguments of the function `step`, as in PyTorch
    for hook in [*_global_step_pre_hooks.values(), *optimizer._hooks("_step_pre_hooks")]:
        replacement = hook(optimizer, args, kwargs)
        if replacement is not None:
            if not isinstance(replacement, tuple) or len(replacement) != 2:
                raise RuntimeError(
                    f"step pre-hook of {type(optimizer).__name__}: it returned {type(replacement).__name__}, "
                    "needs None or a pair (args, kwargs)"
                )
            args, kwargs = replacement
    result = type(optimizer).step(*args, **kwargs)
    for hook in [*optimizer._hooks("_step_post_hooks"), *_global_step_post_hooks.values()]:
        hook(optimizer, args, kwargs)
    return result


def check_settings(optimizer: str, **settings: Any) -> None:
    """Raise ValueError if a setting is negative or is a tensor with more than one element."""
    for name, value in settings.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError(
                f"{optimizer}({name}): got a tensor of shape {tuple(value.shape)}, needs one element"
            )
        if not value >= 0.0:
            raise ValueError(f"{optimizer}({name}): got {value}, needs a number of at least 0")


def refuse(optimizer: str, **options: Any) -> None:
    """Raise NotImplementedError if one of the unsupported options is selected."""
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"{optimizer}({name}={value!r}) is not supported")
