"""Trace programs: a program runs with proxies for its arguments, and operations on the proxies become a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import threading
import warnings
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from rushlight.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from rushlight.fx._writer import GENERATED
from rushlight.fx.graph import Graph
from rushlight.fx.node import Argument
from rushlight.fx.proxy import ParameterProxy, Proxy, TracerBase
from rushlight_core import Tensor, pytree
from rushlight_core._sym import _assert
from rushlight_nn import Module, Parameter
from rushlight_nn.module import _GetattrFromTables

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

# Functions that become one node, by the id of the dictionary of globals that contains them and by their name.
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_MISSING = object()
# A trace replaces methods of Module and globals of other modules, so only one trace runs at a time. Other threads are
# not affected.
_tracing = threading.RLock()
# The thread of the trace that runs, or None.
_thread_of_trace: int | None = None


class PHBase:
    """A placeholder in `concrete_args`: the argument, or the part of one, becomes an input of the graph.

    The attributes of an object of a subclass are copied to the placeholder's node.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x["a"] + x["b"], {"x": {"a": torch.fx.PH, "b": torch.fx.PH}})
        >>> traced({"a": 1, "b": 2})
        3
    """

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A PHBase with a key, by which a program can find the placeholder's node.

    Example:
        >>> traced = torch.fx.symbolic_trace(lambda x: x[0], {"x": (PHWithMeta("image"),)})
        >>> [node.ph_key for node in traced.graph.find_nodes(op="placeholder")]
        ['image']
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


#: Marks, in `concrete_args`, the parts of containers that remain arguments of the graph.
PH = PHBase()


def is_fx_tracing() -> bool:
    """Return whether the calling thread is tracing a program.

    Example:
        >>> is_fx_tracing()
        False
    """
    return threading.get_ident() == _thread_of_trace


class ProxyableClassMeta(type):
    """A metaclass: in a trace, a call of the class with a proxy among its arguments is recorded as one node.

    Example:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> traced = torch.fx.symbolic_trace(lambda x: Pair(x, x + 1))
        >>> traced(3).right
        4
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_in((args, kwargs)) if is_fx_tracing() else None
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


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
        autowrap_modules: Python modules. Each call of one of their public functions with a proxy becomes one
            node.
        autowrap_functions: functions. Each call of one of them with a proxy becomes one node.
        param_shapes_constant: whether `shape`, `size()`, `dim()`, `ndim`, `numel()` and `nelement()` of parameters return
            their values during the trace instead of proxies.

    Raises:
        TraceError: the traced program needs the value of a proxy.

    Example:
        >>> graph = torch.fx.Tracer().trace(lambda x: x.relu() + 1)
        >>> [node.op for node in graph.nodes]
        ['placeholder', 'call_method', 'call_function', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.param_shapes_constant = param_shapes_constant
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
        self.module_stack.clear()
        self._calls: dict[str, int] = {}
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
        """Return the path of `mod` in the root module. Raise NameError if `mod` is not in the root module."""
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
        calls = self._calls[path] = self._calls.get(path, 0) + 1
        key = path if calls == 1 else f"{path}@{calls - 1}"
        self.module_stack[key] = (path, type(m))
        try:
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            del self.module_stack[key]

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
            constant = self.param_shapes_constant and isinstance(attr_val, Parameter)

            def proxy(node: Any) -> Proxy:
                return ParameterProxy(self, node, path, attr_val) if constant else self.proxy(node)

            parameter_proxy_cache[path] = self.create_proxy("get_attr", path, (), {}, proxy_factory_fn=proxy)
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
                path = self._constants[id(a)] = self.get_fresh_qualname("_tensor_constant")
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(type(a), ProxyableClassMeta):  # an object that the trace did not construct
            path = self._constants.get(id(a))
            if path is None:
                path = self._constants[id(a)] = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super()._argument(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return `prefix` followed by a number: the first such name that is not an attribute of the root."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # The trace -----------------------------------------------------------------------------------------------

    def trace(
        self,
        root: Module | Callable[..., Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> Graph:
        """Return the graph of a module or a function.

        Args:
            root: the module, whose method `traced_func_name` is called once, or a function. The tensors and modules that a
                function uses are stored in a new Module, `self.root`.
            concrete_args: values to pass instead of proxies: a dict from names of arguments to values, or a tuple. A value
                may be or contain `PH`, which becomes a proxy. See `symbolic_trace`.
        """
        global _thread_of_trace
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
        returned_type = _annotations(function).get("return")
        with _tracing, ExitStack() as stack:
            function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
            self._patch(stack, function)
            outer, _thread_of_trace = _thread_of_trace, threading.get_ident()
            try:
                result = function(*args)
            finally:
                _thread_of_trace = outer
            returned = self.create_arg(result)
        self.create_node("output", "output", (returned,), {}, type_expr=returned_type)
        return self.graph

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Return the function to trace, and its arguments by position: the root, proxies and concrete values.

        If `concrete_args` contains a container for an argument, the returned function takes the leaves of all arguments of
        `root_fn`, and returns the leaves of the result of `root_fn`.
        """
        analysed = inspect.unwrap(root_fn)
        if isinstance(analysed, functools.partial) or not hasattr(analysed, "__code__"):
            raise TypeError(
                f"fx.Tracer.trace(root): must be a module or a function, got {type(root_fn).__name__}"
            )
        bound = inspect.ismethod(analysed)
        code: CodeType = analysed.__code__
        parameters = list(inspect.signature(analysed).parameters.values())
        if bound:
            args: list[Any] = []
        elif is_module:
            if not parameters:
                raise RuntimeError("fx.Tracer.trace(root): forward has no argument `self`")
            args, parameters = [self.root], parameters[1:]
        else:
            args = []
        stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
        # Sort parameters in the order of the code's variables, in which keyword-only arguments precede *args.
        parameters.sort(
            key=lambda parameter: (parameter.kind in stars, parameter.kind == inspect.Parameter.VAR_KEYWORD)
        )
        plain = [parameter.name for parameter in parameters if parameter.kind not in stars]
        if isinstance(concrete_args, tuple) and concrete_args and parameters and not plain:
            for number, value in enumerate(concrete_args):
                args.append(self._placeholder(f"input_{number}", (), f"input_{number}", value))
            return root_fn, args
        if isinstance(concrete_args, tuple):
            if len(plain) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(plain)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete = dict(zip(plain, concrete_args, strict=True))
        else:
            concrete = dict(concrete_args or {})
        unknown = set(concrete) - {parameter.name for parameter in parameters}
        if unknown:
            raise ValueError(f"fx.Tracer.trace(concrete_args): there is no argument {sorted(unknown)[0]!r}")
        first = len(args)
        annotations = _annotations(analysed)
        for parameter in parameters:
            target = stars.get(parameter.kind, "") + parameter.name
            default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
            leaves, spec = pytree.tree_flatten(concrete.get(parameter.name, PH))
            if spec.is_leaf():
                kind = annotations.get(parameter.name)
                args.append(self._placeholder(target, default, parameter.name, leaves[0], kind))
                continue
            made = [
                self._placeholder(f"{parameter.name}_{number}", (), f"{parameter.name} (leaf {number})", leaf)
                for number, leaf in enumerate(leaves, 1)
            ]
            args.append(spec.unflatten(made))
        called = root_fn
        given = analysed.__func__ if bound else analysed
        variable = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if variable or code.co_kwonlyargcount:
            # Create the same function with ordinary arguments in place of *args and **kwargs.
            ordinary = code.replace(
                co_flags=code.co_flags & ~variable,
                co_argcount=len(args) + bound,
                co_posonlyargcount=0,
                co_kwonlyargcount=0,
            )
            called = FunctionType(ordinary, given.__globals__, given.__name__, None, given.__closure__)
            if bound:
                called = functools.partial(called, analysed.__self__)
        _, spec = pytree.tree_flatten(tuple(args[first:]))
        if all(child.is_leaf() for child in spec.children_specs):
            return called, args
        names = [stars.get(parameter.kind, "") + parameter.name for parameter in parameters]
        defaults = {
            parameter.name: parameter.default
            for parameter in parameters
            if parameter.default is not inspect.Parameter.empty
        }
        info = _PyTreeInfo(names, spec, None)
        codegen = _PyTreeCodeGen(info, defaults)
        self.graph.set_codegen(codegen)
        for node in self.graph.find_nodes(op="placeholder"):
            node.target = str(node.target).lstrip("*")
        owner, leaves = args[:first], pytree.tree_leaves(tuple(args[first:]))

        @functools.wraps(given if bound else root_fn)
        def flattened(*leaves: Any) -> Any:
            result = called(*owner, *spec.unflatten(leaves))
            results, out_spec = pytree.tree_flatten(result)
            codegen.pytree_info = info._replace(out_spec=out_spec)
            return results

        return flattened, leaves

    def _placeholder(
        self, target: str, default: tuple[Any, ...], name: str, value: Any, kind: Any = None
    ) -> Any:
        """Create a placeholder. Return the placeholder's proxy if `value` is a PHBase, and `value` otherwise.

        If `value` is None, a bool, a number or a string, the graph checks that the argument is equal to `value`. For other
        objects, issue a warning that the graph does not check the argument.
        """
        proxy = self.create_proxy("placeholder", target, default, {}, type_expr=kind)
        if isinstance(value, PHBase):
            for attribute, content in vars(value).items():
                if not hasattr(proxy.node, attribute):
                    setattr(proxy.node, attribute, content)
            return proxy
        if value is not None and not isinstance(value, (bool, int, float, str)):
            warnings.warn(
                f"fx: the graph does not check that the argument {name} is the value of type {type(value).__name__} that "
                "the trace used",
                stacklevel=4,
            )
            return value
        same = (
            proxy == value
            if value is not None
            else self.create_proxy("call_function", _is_none, (proxy,), {})
        )
        message = f"{name} has been specialized to have value {value} but got another value"
        self.create_proxy("call_function", _assert, (same, message), {})
        return value

    def _patch(self, stack: ExitStack, function: Callable[..., Any]) -> None:
        """Intercept calls of modules, reads of their attributes, and calls of wrapped functions, until `stack` is closed."""
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


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    return getattr(inspect.unwrap(function), "__annotations__", {})


def _is_none(value: Any) -> bool:
    return value is None


def _put(stack: ExitStack, names: dict[str, Any], name: str, value: Any) -> None:
    """Set a global name to another value until `stack` is closed."""
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


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
) -> Any:
    """Trace a module or a function by calling it once with proxies for its arguments, and return a GraphModule.

    Args:
        root: the module or function to trace. A call of a layer of nn other than Sequential becomes one node; the calls of
            all other submodules are traced.
        concrete_args: values to pass instead of proxies: a dict from names of arguments to values, or a tuple
            with a value for each argument. The GraphModule still has these arguments. A call of the
            GraphModule raises AssertionError if a number, a string, a bool or None differs from the value
            that the trace used; for other objects, the trace warns that the GraphModule does not check them.
            The value `PH` is replaced by a proxy. If a value is a container, each leaf of the container
            becomes a separate placeholder, and a leaf may be `PH`. The GraphModule then expects a container
            of the same structure for this argument.

    Raises:
        TraceError: the traced program needs the value of a proxy.
        ValueError: `concrete_args` has a name that is not an argument.
        RuntimeError: `concrete_args` is a tuple of another length than the number of arguments.

    A call of the GraphModule raises ValueError if an argument has a different structure from `concrete_args`.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        >>> [node.name for node in traced.graph.nodes]
        ['input_1', '_0', '_1', 'output']
        >>> PH = torch.fx.PH
        >>> traced = torch.fx.symbolic_trace(lambda x, n: [x["a"] * n, x["b"]], {"x": {"a": PH, "b": PH}, "n": 3})
        >>> traced({"b": 1, "a": 2}, 3)
        [6, 1]
    """
    from rushlight.fx.graph_module import GraphModule

    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
