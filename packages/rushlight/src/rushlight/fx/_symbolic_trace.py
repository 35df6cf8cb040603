"""Trace programs: a program runs with proxies for its arguments, and operations on the proxies become a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import threading
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rushlight.fx.graph import GENERATED, Graph
from rushlight.fx.node import Argument
from rushlight.fx.proxy import Proxy, TracerBase
from rushlight_core import Tensor
from rushlight_core._sym import _assert
from rushlight_nn import Module, Parameter
from rushlight_nn.module import _GetattrFromTables

__all__ = ["Tracer", "symbolic_trace", "wrap"]

# Functions that become one node, by the id of the dictionary of globals that contains them and by their name.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_MISSING = object()
# A trace replaces methods of Module and globals of other modules, so only one trace runs at a time. Other threads are
# not affected.
_tracing = threading.RLock()


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Register a function of the calling module, so that a trace records each call of the function as one node.

    The function itself is not traced. A call without a proxy among its arguments is not recorded. Call `wrap` at the top
    level of the module, with the function or its name, or use `wrap` as a decorator.

    Args:
        fn_or_name: a function, or the name of a global function of the calling module.

    Returns:
        `fn_or_name`.

    Raises:
        RuntimeError: `fn_or_name` is neither a function nor a string.
        NotImplementedError: `wrap` is called inside a function.

    Example::

        @torch.fx.wrap
        def scale(x, by):
            return x * by if by > 0 else x  # a trace cannot evaluate the condition

        torch.fx.symbolic_trace(lambda x, by: scale(x, by)).code
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            f"fx.wrap(fn_or_name): must be a function or a name, got {type(fn_or_name).__name__}"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("fx.wrap(): must be called at the top level of a module")
    _wrapped[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


def _proxy_in(values: Any) -> Proxy | None:
    if isinstance(values, Proxy):
        return values
    if isinstance(values, dict):
        values = values.values()
    elif isinstance(values, slice):
        values = (values.start, values.stop, values.step)
    elif not isinstance(values, (tuple, list)):
        return None
    return next((found for part in values if (found := _proxy_in(part)) is not None), None)


def _one_node(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_in((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    call.__fx_wrapped__ = True  # type: ignore[attr-defined]
    return call


class Tracer(TracerBase):
    """Traces a module or a function into a Graph. Subclasses override methods to change how nodes are created.

    Args:
        autowrap_modules: modules. Each call of one of their public functions with a proxy becomes one node.
        autowrap_functions: functions. Each call of one of them with a proxy becomes one node.
        param_shapes_constant: must be False.

    Raises:
        NotImplementedError: `param_shapes_constant` is true.
        TraceError: the traced program needs the value of a proxy.

    Example:
        >>> graph = torch.fx.Tracer().trace(lambda x: x.relu() + 1)
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_method', 'call_function', 'output']
    """

    #: The method of a module that `trace` calls.
    traced_func_name: str = "forward"

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        if param_shapes_constant:
            raise NotImplementedError("fx.Tracer(param_shapes_constant): must be False")
        self._autowrapped_modules = tuple(autowrap_modules)
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value) and not isinstance(value, type)
        ]
        self._autowrapped = {id(function) for function in (*functions, *autowrap_functions)}
        self._enter(Module())

    def _enter(self, root: Module) -> None:
        self.root = root
        self._paths = {module: path for path, module in root.named_modules()}
        self._parameters = {id(p): path for path, p in root.named_parameters()}
        self._buffers = {id(b): path for path, b in root.named_buffers()}
        # Tensors that are plain attributes, and tensors that become attributes during the trace.
        self._constants: dict[int, str] = {
            id(value): f"{path}.{name}" if path else name
            for path, module in reversed(list(root.named_modules()))
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        }

    # Methods that subclasses override -------------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a call of the module becomes one `call_module` node.

        By default, return True for all layers of nn except Sequential.
        """
        home = type(m).__module__
        return home.split(".")[0] == "rushlight_nn" and type(m).__name__ != "Sequential"

    def path_of_module(self, mod: Module) -> str:
        """Return the path of `mod` in the root. Raise NameError if the root does not contain `mod`."""
        try:
            return self._paths[mod]
        except KeyError:
            raise NameError(
                f"fx: a module of type {type(mod).__name__} is called, but is not a submodule of the root"
            ) from None

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of a call of a submodule: a proxy if it is a leaf module, else the result of `forward`."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the value of a module's attribute, or a proxy if the attribute is a parameter of the root.

        If `proxy_buffer_attributes` is true, the function also returns a proxy for a buffer of the root.
        """
        if isinstance(attr_val, Parameter):
            names = self._parameters
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            names = self._buffers
        else:
            return attr_val
        path = names.get(id(attr_val))
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {})
        return parameter_proxy_cache[path]

    def _argument(self, a: Any) -> Argument:
        # Tensors that the root does not have become attributes of the root.
        if isinstance(a, Parameter):
            path = self._parameters.get(id(a))
            if path is None:
                raise NameError(
                    "fx: the traced program uses a Parameter that is not a parameter of the root\n"
                    "hint: assign the Parameter to an attribute of the root module"
                )
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Tensor):
            path = self._buffers.get(id(a))
            if path is None:
                path = self._constants.get(id(a))
            if path is None:
                number = 0
                while hasattr(self.root, f"_tensor_constant{number}"):
                    number += 1
                path = self._constants[id(a)] = f"_tensor_constant{number}"
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super()._argument(a)

    # The trace -----------------------------------------------------------------------------------------------

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """Return the graph of a module or a function.

        Args:
            root: the module, whose method `traced_func_name` is called once, or a function. The tensors and modules that a
                function uses are stored in a new Module, `self.root`.
            concrete_args: a dict from names of arguments to values that are passed to the program in place of proxies. The
                graph still has a placeholder for each of these arguments. If the value is None, a bool, a number or a str,
                the graph also checks that the argument equals the value.
        """
        self._enter(root if isinstance(root, Module) else Module())
        if isinstance(root, Module):
            function = getattr(type(root), self.traced_func_name, None)
            if function is None:
                raise AttributeError(
                    f"fx.Tracer.trace(root): {type(root).__name__} has no method {self.traced_func_name!r}"
                )
        else:
            function = root
        self.graph: Graph = Graph(tracer_cls=type(self))
        with _tracing, ExitStack() as stack:
            function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            self._patch(stack, function)
            result = function(*args)
            returned = self.create_arg(result)
        self.create_node("output", "output", (returned,), {})
        return self.graph

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Return a variant of `root_fn` that takes all arguments by position, and a list of the proxies to pass to it."""
        analysed = inspect.unwrap(root_fn)
        if isinstance(analysed, functools.partial) or not hasattr(analysed, "__code__"):
            raise TypeError(
                f"fx.Tracer.trace(root): must be a module or a function, got {type(root_fn).__name__}"
            )
        bound = inspect.ismethod(analysed)
        code: CodeType = analysed.__code__
        concrete = dict(concrete_args or {})
        parameters = list(inspect.signature(analysed).parameters.values())
        if bound:
            args: list[Any] = []
        elif is_module:
            if not parameters:
                raise RuntimeError("fx.Tracer.trace(root): forward has no argument `self`")
            args, parameters = [self.root], parameters[1:]
        else:
            args = []
        unknown = set(concrete) - {parameter.name for parameter in parameters}
        if unknown:
            raise ValueError(f"fx.Tracer.trace(concrete_args): there is no argument {sorted(unknown)[0]!r}")
        stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        # Sort parameters in the order of the code's variables, in which keyword-only arguments precede *args.
        parameters.sort(
            key=lambda parameter: (parameter.kind in stars, parameter.kind == inspect.Parameter.VAR_KEYWORD)
        )
        for parameter in parameters:
            target = stars.get(parameter.kind, "") + parameter.name
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            proxy = self.create_proxy("placeholder", target, default, {})
            if parameter.name not in concrete:
                args.append(proxy)
                continue
            value = concrete[parameter.name]
            same = (
                proxy == value
                if value is not None
                else self.create_proxy("call_function", _is_none, (proxy,), {})
            )
            if value is None or isinstance(value, (bool, int, float, str)):
                message = f"{parameter.name} has been specialized to have value {value} but got another value"
                self.create_proxy("call_function", _assert, (same, message), {})
            args.append(value)
        variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if variable or code.co_kwonlyargcount:
            # Create the same function with ordinary arguments in place of *args and **kwargs.
            plain = code.replace(
                co_flags=code.co_flags & ~variable,
                co_argcount=len(args) + bound,
                co_posonlyargcount=0,
                co_kwonlyargcount=0,
            )
            given = analysed.__func__ if bound else analysed
            made = FunctionType(plain, given.__globals__, given.__name__, None, given.__closure__)
            return (functools.partial(made, analysed.__self__) if bound else made), args
        return root_fn, args

    def _patch(self, stack: ExitStack, function: Callable[..., Any]) -> None:
        """Intercept calls and attributes of modules, and calls of wrapped functions, until the exit stack is closed."""
        thread = threading.get_ident()
        call, attribute = Module.__call__, Module.__getattribute__
        cache: dict[str, Any] = {}
        seen: set[int] = set()

        def module_call(mod: Module, /, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return call(mod, *args, **kwargs)
            self._wrap_globals(stack, type(mod).forward, seen)
            return self.call_module(mod, lambda *args, **kwargs: call(mod, *args, **kwargs), args, kwargs)

        def module_attribute(mod: Module, name: str) -> Any:
            value = attribute(mod, name)
            if threading.get_ident() == thread and isinstance(value, Tensor):
                return self.getattr(name, value, cache)
            return value

        # Modules that define __getattr__ find their parameters through this method.
        fallback = _GetattrFromTables.__getattr__

        def table_attribute(mod: Any, name: str) -> Any:
            value = fallback(mod, name)
            if threading.get_ident() == thread and isinstance(value, Tensor):
                return self.getattr(name, value, cache)
            return value

        stack.enter_context(_replaced(Module, "__call__", module_call))
        stack.enter_context(_replaced(Module, "__getattribute__", module_attribute))
        stack.enter_context(_replaced(_GetattrFromTables, "__getattr__", table_attribute))
        self._wrapped = {id(names[name]) for (_, name), names in _wrapped.items() if name in names}
        self._wrapped_builtins = {
            name for (_, name), names in _wrapped.items() if name not in names and hasattr(builtins, name)
        }
        for (_, name), names in list(_wrapped.items()):
            if name in names:
                _put(stack, names, name, _one_node(names[name]))
            elif hasattr(builtins, name):
                _put(stack, names, name, _one_node(getattr(builtins, name)))
        self._wrap_globals(stack, function, seen)
        for module in self._autowrapped_modules:
            self._wrap_names(stack, vars(module), seen)

    def _wrap_globals(self, stack: ExitStack, function: Callable[..., Any], seen: set[int]) -> None:
        function = inspect.unwrap(function)
        names = getattr(function, "__globals__", None)
        if names is not None:
            # The code of a GraphModule calls wrapped functions by global names of its own.
            generated = function.__code__.co_filename.startswith(GENERATED)
            if generated and id(names) not in seen:
                for name in self._wrapped_builtins - names.keys():
                    _put(stack, names, name, _one_node(getattr(builtins, name)))
            self._wrap_names(stack, names, seen, self._wrapped if generated else frozenset())

    def _wrap_names(
        self, stack: ExitStack, names: dict[str, Any], seen: set[int], wrapped: AbstractSet[int] = frozenset()
    ) -> None:
        if id(names) in seen:
            return
        seen.add(id(names))
        for name, value in list(names.items()):
            known = id(value) in self._autowrapped or id(value) in wrapped
            if known and not name.startswith("__") and callable(value):
                _put(stack, names, name, _one_node(value))


def _is_none(value: Any) -> bool:
    return value is None


def _put(stack: ExitStack, names: dict[str, Any], name: str, value: Any) -> None:
    """Set a global name to another value until the exit stack is closed."""
    before = names.get(name, _MISSING)
    names[name] = value
    if before is _MISSING:
        stack.callback(names.pop, name, None)
    else:
        stack.callback(names.__setitem__, name, before)


@contextmanager
def _replaced(cls: type, name: str, value: Any) -> Any:
    own = cls.__dict__.get(name, _MISSING)
    setattr(cls, name, value)
    try:
        yield
    finally:
        if own is _MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, own)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Any:
    """Trace a module or a function by calling it once with proxies for its arguments, and return a GraphModule.

    Args:
        root: the module or function to trace. A call of a layer of nn other than Sequential becomes one node; the calls of
            all other submodules are traced.
        concrete_args: a dict from names of arguments to values that are passed in place of proxies; see
            :meth:`Tracer.trace`.

    Raises:
        TraceError: the traced program needs the value of a proxy.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> [node.name for node in traced.graph.nodes]
        ['input_1', '_0', '_1', 'output']
    """
    from rushlight.fx.graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
