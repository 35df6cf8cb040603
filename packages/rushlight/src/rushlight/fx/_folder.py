"""Write a GraphModule as a folder of Python source and weights."""

from __future__ import annotations

import os
import pickle
import textwrap
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import rushlight as torch
from rushlight.fx._names import name_of
from rushlight.fx._writer import _Style, _Writer
from rushlight.fx.graph_module import GraphModule
from rushlight_core import Tensor
from rushlight_nn import Module

_WRITTEN = ("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d")

_HEAD = '''\
"""A module that was written by GraphModule.to_folder."""

import pickle
from pathlib import Path

import rushlight as torch
{imports}
__all__ = ["{name}"]

_FOLDER = Path(__file__).parent


def _objects():
    with open(_FOLDER / "objects.pkl", "rb") as file:
        return pickle.load(file)


{globals}class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        objects = _objects()
'''


def write_folder(module: GraphModule, folder: str | os.PathLike[str], name: str) -> None:
    """Write the files of `GraphModule.to_folder`."""
    if not name.isidentifier():
        raise ValueError(f"fx.GraphModule.to_folder(module_name): must be a name of a class, got {name!r}")
    # Everything is made before the first file is written, so that an error leaves no folder behind.
    # Annotations may be types that cannot be imported.
    code = _Writer(module.graph, "self", _Style(annotations=False)).write()
    imports, globals_ = _globals(code.globals)
    lines, objects = _attributes(module)
    head = _HEAD.format(
        name=name,
        imports="".join(f"import {imported}\n" for imported in sorted(set(imports.values()))),
        globals="".join(f"{known} = {text}\n" for known, text in globals_.items()) + "\n\n" * bool(globals_),
    )
    body = "".join(f"        {line}\n" for line in lines)
    source = f"{head}{body}\n{textwrap.indent(code.src, '    ')}"
    content = _pickled(objects)
    path = Path(folder)
    path.mkdir(exist_ok=True)
    torch.save(module.state_dict(), path / "state_dict.pt")
    (path / "objects.pkl").write_bytes(content)
    (path / "module.py").write_text(source)
    (path / "__init__.py").write_text(f'from .module import {name}\n\n__all__ = ["{name}"]\n')


def _globals(names: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return two dicts whose keys are global names of the generated code.

    The first dict contains the module to import for each name. The second dict contains the source of each
    name's value, except for names that the import itself defines.
    """
    imports: dict[str, str] = {}
    texts: dict[str, str] = {}
    for known, value in names.items():
        if known == "torch":
            continue
        if isinstance(value, ModuleType):
            imports[known], texts[known] = value.__name__, value.__name__
            continue
        home = getattr(value, "__module__", None)
        if not callable(value) or name_of(value) is None or home in (None, "__main__"):
            raise ValueError(
                f"fx.GraphModule.to_folder(): the graph uses {value!r}, which cannot be imported by a name\n"
                "hint: define it in a module that can be imported"
            )
        home = "operator" if home == "_operator" else str(home)
        imports[known] = home
        texts[known] = f"{home}.{getattr(value, '__qualname__', known)}"
    return imports, {known: text for known, text in texts.items() if text != known}


def _attributes(module: GraphModule) -> tuple[list[str], dict[str, Any]]:
    """Return source lines that set the module's attributes, and the objects that they read from a pickle."""
    objects: dict[str, Any] = {}
    lines: list[str] = []
    shared = Counter(id(tensor) for _, tensor in module.named_parameters(remove_duplicate=False))
    shared.update(id(tensor) for _, tensor in module.named_buffers(remove_duplicate=False))

    def plain(tensor: Any) -> bool:
        return (
            type(tensor) in (Tensor, torch.nn.Parameter)
            and shared[id(tensor)] == 1
            and tensor.device.type == "cpu"
            and tensor.layout is torch.strided
            and tensor.is_contiguous()
        )

    def keep(path: str, value: Any) -> str:
        objects[path] = value
        return f"objects[{path!r}]"

    for path, child in module.named_children():
        lines.append(f"setattr(self, {path!r}, {_constructor(child, plain) or keep(path, child)})")
    for path, parameter in module._parameters.items():
        if parameter is None:
            lines.append(f"self.register_parameter({path!r}, None)")
            continue
        made = f"torch.nn.Parameter(torch.empty({_form(parameter)}), requires_grad={parameter.requires_grad})"
        lines.append(f"setattr(self, {path!r}, {made if plain(parameter) else keep(path, parameter)})")
    for path, buffer in module._buffers.items():
        persistent = path not in module._non_persistent_buffers_set
        written = buffer is not None and persistent and plain(buffer) and not buffer.requires_grad
        value = (
            "None" if buffer is None else f"torch.empty({_form(buffer)})" if written else keep(path, buffer)
        )
        lines.append(f"self.register_buffer({path!r}, {value}, persistent={persistent})")
    known = {*module._modules, *module._parameters, *module._buffers}
    for node in module.graph.find_nodes(op="get_attr"):
        path = str(node.target).partition(".")[0]
        if path not in known:
            known.add(path)
            lines.append(f"setattr(self, {path!r}, {keep(path, getattr(module, path))})")
    if getattr(module.graph._codegen, "pytree_info", None) is not None:
        lines += [f"self.{path} = {keep(path, getattr(module, path))}" for path in ("_in_spec", "_out_spec")]
    lines.append('self.load_state_dict(torch.load(_FOLDER / "state_dict.pt"))')
    lines.append(f"self.training = {module.training}")
    return lines, objects


def _form(tensor: Tensor) -> str:
    return f"{list(tensor.shape)}, dtype=torch.{str(tensor.dtype).rpartition('.')[2]}"


def _constructor(child: Module, plain: Any) -> str | None:
    """Return the source of a call that constructs the layer, or None if such a call would lose a property of the layer."""
    kind = type(child).__name__
    if kind not in _WRITTEN or type(child) is not getattr(torch.nn, kind):
        return None
    tensors = [*child.parameters(), *child.buffers()]
    if not all(plain(tensor) and tensor.dtype in (torch.float32, torch.int64) for tensor in tensors):
        return None
    if not all(parameter.requires_grad for parameter in child.parameters()):
        return None
    source = repr(child)
    made = eval(source, {kind: type(child), "__builtins__": {}})
    if {**_settings(child), "training": True} != _settings(made):
        return None
    if any(value for name, value in vars(child).items() if name.endswith(("_hooks", "_hooks_with_kwargs"))):
        return None
    return f"torch.nn.{source}{'' if child.training else '.eval()'}"


def _settings(layer: Module) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(layer).items()
        if not name.startswith("_") and not isinstance(value, Tensor)
    }


def _pickled(objects: dict[str, Any]) -> bytes:
    try:
        return pickle.dumps(objects)
    except Exception as error:
        for path, value in objects.items():
            try:
                pickle.dumps(value)
            except Exception:
                raise TypeError(
                    f"fx.GraphModule.to_folder(): the attribute '{path}' of type {type(value).__name__} cannot be pickled: "
                    f"{error}"
                ) from error
        raise
