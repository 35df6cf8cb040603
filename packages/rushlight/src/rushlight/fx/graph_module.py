"""Modules that run a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
import textwrap
from typing import Any

from rushlight.fx._writer import GENERATED
from rushlight.fx.graph import Graph, PythonCode
from rushlight_core import Tensor
from rushlight_nn import Module

__all__ = ["GraphModule"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copy the attribute at a path from one module to another. Create modules for missing parts of the path."""
    *folders, field = target.split(".")
    for folder in folders:
        below = getattr(from_module, folder)
        known = getattr(to_module, folder, None)
        if known is below:  # a part of the path is already the same object
            return
        if known is None:
            known = Module()
            setattr(to_module, folder, known)
        from_module, to_module = below, known
    _set(to_module, field, getattr(from_module, field))


def _set(module: Module, name: str, value: Any) -> None:
    from rushlight_nn import Parameter

    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        if name in module._buffers or not hasattr(module, name):
            module.register_buffer(name, value)
            return
    setattr(module, name, value)


class _CodeOnlyModule(Module):
    """A module with the parameters, buffers, submodules and attributes in the `__dict__` of a GraphModule."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        for table in ("_parameters", "_buffers", "_modules"):
            for name, value in body.get(table, {}).items():
                if table == "_buffers":
                    self.register_buffer(name, value)
                else:
                    setattr(self, name, value)
        known = set(self.__dict__) | {
            name for table in ("_parameters", "_buffers", "_modules") for name in body.get(table, {})
        }
        for name, value in body.items():
            if name not in known:
                object.__setattr__(self, name, value)


class GraphModule(Module):
    """A module whose `forward` is generated from a graph.

    To change the program, assign another graph to `graph`, or change the graph and call `recompile()`. `code` is the source
    of `forward`.

    Args:
        root: a module, or a dict from paths to objects, with the parameters, buffers and submodules that the graph uses.
        graph: the graph. Its `owning_module` becomes this module.
        class_name: the name of the class.

    Raises:
        RuntimeError: `root` is neither a module nor a dict, or is a dict that lacks a path which the graph
            uses.
        AttributeError: `root` is a module that lacks an attribute which the graph uses.

    Example:
        >>> traced = torch.fx.symbolic_trace(nn.ReLU())
        >>> isinstance(traced, torch.fx.GraphModule), traced(torch.tensor([-1.0, 2.0]))
        (True, tensor([0., 2.]))
    """

    _is_graph_module_class = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each GraphModule has a separate class, which defines its `forward`.
        base = next(c for c in cls.__mro__ if not c.__dict__.get("_is_graph_module_class", False))
        made = type(base.__name__, (base,), {"_is_graph_module_class": True, "__module__": base.__module__})
        return super().__new__(made)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training: bool = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            wanted = dict.fromkeys(
                str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")
            )
            if missing := [path for path in wanted if path not in root]:
                raise RuntimeError(f"fx.GraphModule(root): has no '{missing[0]}', which the graph uses")
            for path in sorted(wanted, key=lambda path: path.count(".")):
                *folders, field = path.split(".")
                module: Module = self
                for folder in folders:
                    if not hasattr(module, folder):
                        setattr(module, folder, Module())
                    module = getattr(module, folder)
                _set(module, field, root[path])
        else:
            raise RuntimeError(f"fx.GraphModule(root): must be a module or a dict, got {type(root).__name__}")
        self.meta: dict[str, Any] = {}
        self._tracer_cls = graph._tracer_cls
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph from which `forward` is generated. Assigning another graph generates `forward` again."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"fx.GraphModule.graph: must be a Graph, got {type(graph).__name__}")
        object.__setattr__(self, "_graph", graph)
        graph.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Generate `forward` from the current state of the graph."""
        code = self._graph.python_code("self")
        containers = getattr(self._graph._codegen, "pytree_info", None)
        if containers is not None:
            object.__setattr__(self, "_in_spec", containers.in_spec)
            object.__setattr__(self, "_out_spec", containers.out_spec)
        file = f"{GENERATED}{next(_numbers)}>"
        linecache.cache[file] = (len(code.src), None, code.src.splitlines(True), file)  # for tracebacks
        names = dict(code.globals)
        exec(compile(code.src, file, "exec", dont_inherit=True), names)
        object.__setattr__(self, "_code", code.src)
        type(self).forward = names["forward"]  # type: ignore[method-assign]
        return code

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self._code

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """Return the source of a class with this `forward`, and of the classes of child modules with a graph.

        Args:
            print_output: whether to print the source.
            include_stride, include_device, colored, expanded_def, additional_meta: see `Graph.python_code`.
            fast_sympy_print: must be False.

        Raises:
            NotImplementedError: `fast_sympy_print` is True.

        Example:
            >>> traced = torch.fx.symbolic_trace(lambda x: x.relu())
            >>> _ = torch.fx.passes.shape_prop.ShapeProp(traced).propagate(torch.ones(2))
            >>> _ = traced.print_readable()
            class GraphModule(torch.nn.Module):
                def forward(self, x: "f32[2]"):
                    relu: "f32[2]" = x.relu();  x = None
                    return relu
            <BLANKLINE>
        """
        if fast_sympy_print:
            raise NotImplementedError("fx.GraphModule.print_readable(fast_sympy_print): must be False")
        name = type(self).__name__
        text = self._readable(
            name if name.isidentifier() else "GraphModule",
            include_stride,
            include_device,
            colored,
            expanded_def,
            additional_meta,
        )
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, *options: Any) -> str:
        stride, device, colored, expanded, meta = options
        code = self._graph.python_code(
            verbose=True,
            include_stride=stride,
            include_device=device,
            colored=colored,
            expanded_def=expanded,
            additional_meta=meta,
        )
        parts = [code.src]
        parts += [
            child._readable(path, *options)
            for path, child in self.named_children()
            if isinstance(child, GraphModule)
        ]
        return f"class {name}(torch.nn.Module):\n{textwrap.indent(chr(10).join(parts), '    ')}"

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a Python package: `from <folder> import <module_name>` imports its class.

        `module.py` contains the class with the code of `forward`, which can be edited. The constructor has no arguments and
        creates linear layers, convolutions and batch norms by their constructors. Tensors are in `state_dict.pt`. All other
        attributes are in `objects.pkl`, a pickle, so only import a folder from a source that you trust. The folder can be
        moved: the package finds its files relative to `module.py`.

        Args:
            folder: the folder. It is created if it does not exist, but its parent must exist. Existing files
                with the same names are replaced.
            module_name: the name of the class.

        Raises:
            ValueError: `module_name` is not an identifier, or the graph calls a function that cannot be imported.
            TypeError: an attribute cannot be pickled.

        Example:
            >>> import tempfile
            >>> traced = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     traced.to_folder(folder, "Small")
            ...     sorted(os.listdir(folder))
            ['__init__.py', 'module.py', 'objects.pkl', 'state_dict.pt']
        """
        from rushlight.fx._folder import write_folder

        write_folder(self, folder, module_name)

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a module at a path. Create modules for missing parts of the path.

        Return False if an existing part of the path is not a module.
        """
        *folders, field = target.split(".")
        module: Module = self
        for folder in folders:
            below = getattr(module, folder, None)
            if below is None:
                below = Module()
                setattr(module, folder, below)
            if not isinstance(below, Module):
                return False
            module = below
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path. Return False if there is no module at the path."""
        *folders, field = target.split(".")
        module: Any = self
        for folder in folders:
            module = getattr(module, folder, None)
            if not isinstance(module, Module):
                return False
        if not isinstance(getattr(module, field, None), Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove modules that no node uses, except those that contain a used module or are part of a called module."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    below = self.get_submodule(str(node.target))
                    used.update(f"{node.target}.{path}" for path, _ in below.named_modules() if path)
        for path in [path for path, _ in self.named_modules() if path and path not in used]:
            self.delete_submodule(path)

    def _body(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_graph", "_code")}

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        root = _CodeOnlyModule(copy.deepcopy(self._body(), memo))
        made = GraphModule.__new__(type(self))
        memo[id(self)] = made
        GraphModule.__init__(made, root, copy.deepcopy(self._graph, memo), type(self).__name__)
        made.training = self.training
        made.meta = copy.deepcopy(self.meta, memo)
        return made

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        made.meta = dict(self.meta)
        return made

    def __reduce__(self) -> Any:
        # The class of this object exists only for its `forward`. The class below is what a program can import.
        base = next(c for c in type(self).__mro__ if not c.__dict__.get("_is_graph_module_class", False))
        body = {name: value for name, value in self._body().items() if name != "_tracer_cls"}
        return _unpickled, (base, body, self._graph, type(self).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()


def _unpickled(base: type[GraphModule], body: dict[str, Any], graph: Graph, class_name: str) -> GraphModule:
    made = base.__new__(base)
    GraphModule.__init__(made, _CodeOnlyModule(body), graph, class_name)
    made.training, made.meta = body["training"], body["meta"]
    return made
