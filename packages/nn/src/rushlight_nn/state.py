"""Reading and loading the state of modules."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping

import rushlight_core as core
from rushlight_core import Tensor

from ._typing import Any
from .conversion import get_swap_module_params_on_conversion
from .hooks import NO_HOOKS, HookTable, RemovableHandle
from .parameter import Parameter, is_lazy

_EXTRA_STATE = "_extra_state"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    class _Keys(NamedTuple):
        missing_keys: list[str]
        unexpected_keys: list[str]

else:
    _Keys = namedtuple("_Keys", ["missing_keys", "unexpected_keys"])


class IncompatibleKeys(_Keys):
    """The result of `load_state_dict`: the keys that are missing from the state, and the unexpected keys in the state.

    Example:
        >>> layer = nn.Linear(2, 2)
        >>> layer.load_state_dict({"weight": layer.weight, "scale": layer.bias}, strict=False)
        _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=['scale'])
    """

    __slots__ = ()

    def __str__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __repr__ = __str__


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


def _with_prefixes(module: Any, prefix: str) -> Iterator[tuple[Any, str]]:
    """Yield a module and all its descendants, parents before children, each with the prefix of its keys."""
    yield module, prefix
    for name, child in module._modules.items():
        if child is not None:
            yield from _with_prefixes(child, f"{prefix}{name}.")


def _sees_the_state(module: Any) -> bool:
    """Return whether user code (a hook or an overridden method) receives the state that is being loaded.

    Such code may change the state. As in PyTorch, user code receives a dictionary that contains only the entries of the
    module and its descendants.
    """
    method = type(module)._load_from_state_dict
    return bool(module._load_state_dict_pre_hooks) or method.__module__.partition(".")[0] != __package__


def _run_post_hooks(module: Any, result: IncompatibleKeys) -> None:
    for child in module.children():
        _run_post_hooks(child, result)
    for hook in list(module._load_state_dict_post_hooks.values()):
        if hook(module, result) is not None:
            raise TypeError(
                f"load_state_dict post-hook of {type(module).__name__}: it must return None "
                "and change the key lists in place"
            )


class State:
    """The part of Module that implements `state_dict` and `load_state_dict`.

    Note [Loading is all or nothing]
    Loading first traverses all modules and collects missing keys, unexpected keys and tensors of the wrong
    shape. Values are copied only afterwards, so that a state that does not fit leaves the module unchanged.
    The functions that will copy the values are collected in the list `local_metadata["deferred"]`. A module
    that overrides `_load_from_state_dict` may ignore this list and copy immediately. `set_extra_state` may
    create child modules, which are checked next. Before `set_extra_state` is called,
    `local_metadata["load_up_to"]` therefore runs the functions collected so far, unless an error has been
    found.
    """

    # The version of the layout of this module's state. It is stored in the state.
    _version: int = 1

    _state_dict_hooks: HookTable = NO_HOOKS
    _state_dict_pre_hooks: HookTable = NO_HOOKS
    _load_state_dict_pre_hooks: HookTable = NO_HOOKS
    _load_state_dict_post_hooks: HookTable = NO_HOOKS

    def get_extra_state(self) -> Any:
        """Return an object to include in `state_dict`. Override this method together with :meth:`set_extra_state`."""
        raise NotImplementedError(f"{type(self).__name__} does not define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the object that :meth:`get_extra_state` returned.

        This method is called after the parameters and buffers of this module are loaded, and before its children are
        checked and loaded, so it may build or replace children.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define set_extra_state")

    # Reading ------------------------------------------------------------------------------------------------

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Return a dictionary from names to all parameters and persistent buffers. The tensors are detached, not copied.

        Args:
            destination: a dictionary to fill instead of a new one.
            prefix: a prefix for all names.
            keep_vars: whether to return the parameters themselves, which require gradients, instead of detached
                tensors.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = getattr(destination, "_metadata", None)
        if metadata is not None:
            metadata[prefix[:-1]] = {"version": self._version}
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():  # type: ignore[attr-defined]
            if child is not None:
                child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        for hook, may_replace in list(self._state_dict_hooks.values()):
            result = hook(self, destination, prefix, local_metadata)
            if result is not None:
                if not may_replace:
                    raise RuntimeError(
                        f"state_dict post-hook of {type(self).__name__}: it must return None "
                        "and change the state in place"
                    )
                destination = result
        return destination

    def _own_state(self) -> dict[str, Any]:
        """Return the parameters and persistent buffers of this module, but not of its children."""
        own = dict(self._parameters)  # type: ignore[attr-defined]
        transient = self._non_persistent_buffers_set  # type: ignore[attr-defined]
        own.update((k, v) for k, v in self._buffers.items() if k not in transient)  # type: ignore[attr-defined]
        return {name: value for name, value in own.items() if value is not None}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    # Loading ------------------------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values from `state_dict` into this module and its descendants.

        Args:
            state_dict: a state, as returned by :meth:`state_dict`.
            strict: whether missing and unexpected keys are an error.
            assign: whether to assign the tensors of the state to the module instead of copying their values.
                The parameters and buffers then have the dtypes and devices of the state.

        Returns:
            the missing and the unexpected keys.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: the state does not fit the module. The message lists all errors. The error leaves
                the module unchanged, except in two cases. First, if a module with an extra state is checked
                before an error is found, the extra state and all entries before it are loaded. Second, if the
                only errors are missing or unexpected keys and a module has a post-hook, all entries that fit
                are loaded, because the post-hook might accept these keys.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"load_state_dict(state_dict): got {type(state_dict).__name__}, "
                "needs a mapping from names to tensors\n"
                "hint: pass load(path), not the path"
            )
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        deferred: list[Callable[[], None]] = []
        loaded = "nothing was loaded"
        has_post_hooks = False
        metadata = getattr(state_dict, "_metadata", None)
        # Hooks may rename keys, so copy the caller's dictionary.
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata

        def run_deferred() -> None:
            for copy in deferred:
                copy()
            deferred.clear()

        def load_up_to(key: str) -> None:
            """Load the entries that have been checked, unless an error has been found."""
            nonlocal loaded
            if not errors and not (strict and (missing or unexpected)):
                run_deferred()
                loaded = f"the entries up to {key!r} were loaded"

        scopes = [("", state)]  # prefixes of the module's ancestors, and the states that they receive
        for module, prefix in _with_prefixes(self, ""):
            local = dict((metadata or {}).get(prefix[:-1], {}))
            local["assign_to_params_buffers"] = assign
            local["deferred"] = deferred
            local["load_up_to"] = load_up_to
            while not prefix.startswith(scopes[-1][0]):
                scopes.pop()
            if prefix and _sees_the_state(module):
                part = {key: value for key, value in scopes[-1][1].items() if key.startswith(prefix)}
                scopes.append((prefix, part))
            # Always pass strict=True, because unexpected keys are returned even if they are not an error.
            module._load_from_state_dict(scopes[-1][1], prefix, local, True, missing, unexpected, errors)
            has_post_hooks = has_post_hooks or bool(module._load_state_dict_post_hooks)
        result = IncompatibleKeys(missing, unexpected)
        # Post-hooks may remove keys from the lists, and expect that the values are already loaded.
        if not errors and (has_post_hooks or not (strict and (missing or unexpected))):
            run_deferred()
            loaded = "the entries that fit were loaded, because a hook might have accepted the state"
            _run_post_hooks(self, result)
        if errors or (strict and (missing or unexpected)):
            raise RuntimeError(self._describe_misfit(strict, missing, unexpected, errors, loaded))
        return result

    def _describe_misfit(
        self,
        strict: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
        loaded: str,
    ) -> str:
        lines = [f"load_state_dict: the state does not fit {type(self).__name__}; {loaded}"]
        if strict and missing:
            lines.append("  Missing key(s) in state_dict: " + _quoted(missing))
        if strict and unexpected:
            lines.append("  Unexpected key(s) in state_dict: " + _quoted(unexpected))
        lines += ["  " + error for error in errors]
        if strict and missing and unexpected:
            wrapped = next(
                (p for p in ("module.", "_orig_mod.") if all(k.startswith(p) for k in unexpected)), None
            )
            import difflib  # takes long to import

            close = difflib.get_close_matches(missing[0], unexpected, n=1)
            if wrapped is not None:
                lines.append(f"hint: the keys come from a wrapped model: remove the prefix {wrapped!r}")
            elif close:
                lines.append(
                    f"hint: does {close[0]!r} in the state correspond to {missing[0]!r} in the module?"
                )
        elif strict and not errors:
            lines.append("hint: pass strict=False to load only the matching entries")
        return "\n".join(lines)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the entries of this module, but not of its children.

        Override this method to load states that older versions of the module saved; see `_version`.
        """
        for hook, with_module in list(self._load_state_dict_pre_hooks.values()):
            first = (self,) if with_module else ()
            hook(
                *first, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        run = local_metadata["deferred"].append if "deferred" in local_metadata else (lambda copy: copy())
        own = self._own_state()
        for name, current in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            value = state_dict[key]
            if not isinstance(value, Tensor):
                error_msgs.append(f"{key}: got {type(value).__name__}, needs a tensor")
            elif is_lazy(current) or is_lazy(value):
                if not is_lazy(current):
                    error_msgs.append(
                        f"{key}: is uninitialized and has no shape yet in the state, but has shape "
                        f"{tuple(current.shape)} in the module"
                    )
                elif not is_lazy(value):
                    run(lambda name=name, value=value: self._load_entry(name, value, assign))
            elif value.shape == (1,) and current.dim() == 0:
                # The state was saved by a version of PyTorch without 0-d tensors.
                run(lambda name=name, value=value: self._load_entry(name, value.detach()[0], assign))
            elif value.shape != current.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                    f"the shape in current model is {current.shape}."
                )
            else:
                run(lambda name=name, value=value: self._load_entry(name, value, assign))
        self._load_extra_state(state_dict, prefix, local_metadata, missing_keys, unexpected_keys, run)
        if strict:
            self._report_unexpected(state_dict, prefix, own, unexpected_keys)

    def _load_entry(self, name: str, value: Tensor, assign: bool) -> None:
        self._check_tables()  # type: ignore[attr-defined]
        table = self._parameters if name in self._parameters else self._buffers  # type: ignore[attr-defined]
        current = table[name]
        with core.no_grad():
            if is_lazy(current):
                current.materialize(value.shape)
            if get_swap_module_params_on_conversion():
                current.data = current.module_load(value, assign)
                current.grad = None  # the dtype or device of the gradient may differ from the new ones
                return
            if not assign:
                current.copy_(value)
                return
            if isinstance(current, Parameter) and not isinstance(value, Parameter):
                value = type(current)(value, requires_grad=current.requires_grad)
            elif value.is_leaf and value.requires_grad != current.requires_grad:
                value.requires_grad_(current.requires_grad)
            table[name] = value

    def _load_extra_state(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        missing_keys: list[str],
        unexpected_keys: list[str],
        run: Any,
    ) -> None:
        key = prefix + _EXTRA_STATE
        if type(self).set_extra_state is not State.set_extra_state:
            if key in state_dict:
                run(lambda: self.set_extra_state(state_dict[key]))
                # The extra state may build or replace the children, so it is set before they are checked.
                if "load_up_to" in local_metadata:
                    local_metadata["load_up_to"](key)
            else:
                missing_keys.append(key)
        elif key in state_dict:
            unexpected_keys.append(key)

    def _report_unexpected(
        self, state_dict: Any, prefix: str, own: dict[str, Any], unexpected_keys: list[str]
    ) -> None:
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + _EXTRA_STATE:
                continue
            first, _, rest = key[len(prefix) :].partition(".")
            known = self._modules if rest else own  # type: ignore[attr-defined]  # a child reports its own keys
            if first not in known:
                unexpected_keys.append(key)

    # Hooks --------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(module, prefix, keep_vars)`, called before `state_dict` reads the module."""
        return self._hook_table("_state_dict_pre_hooks").add(hook)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(module, state_dict, prefix, local_metadata)`, called after `state_dict` has read the module."""
        return self._hook_table("_state_dict_hooks").add((hook, False))  # type: ignore[attr-defined]

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        # The older method, which many libraries use. Its hooks may return another dictionary.
        return self._hook_table("_state_dict_hooks").add((hook, True))  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook`, called with the entries of the module and its descendants before the module loads a state.

        The arguments of the hook are (module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs). The hook may rename keys of `state_dict`, which is a copy of the
        caller's dictionary.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        table = self._hook_table("_load_state_dict_pre_hooks")  # type: ignore[attr-defined]
        return table.add((hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register `hook(module, incompatible_keys)`, called after the module has loaded a state.

        The hook may remove keys from `missing_keys` and `unexpected_keys`. A removed key raises no error.
        """
        return self._hook_table("_load_state_dict_post_hooks").add(hook)  # type: ignore[attr-defined]
