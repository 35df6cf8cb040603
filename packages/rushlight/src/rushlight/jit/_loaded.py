"""Modules that run a loaded program."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import IO, Any, NamedTuple, NoReturn

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph import ExportedProgram, Program
from rushlight_graph import load as load_program
from rushlight_nn import Module, Parameter

__all__ = ["LoadedModule", "ScriptModule", "load"]

File = str | os.PathLike[str] | IO[bytes]


class _Bound(NamedTuple):
    """A program, the tensors with which it runs, and their names in the module.

    A constant, which the module does not register, has the name None.
    """

    names: list[str | None]
    tensors: list[Tensor]
    program: ExportedProgram
    run: Callable[..., Any]


class ScriptModule(Module):
    """Base class of the modules that `trace` and `load` return. Subclasses are not compiled.

    Example:
        >>> isinstance(torch.jit.trace(nn.ReLU(), torch.ones(2)), torch.jit.ScriptModule)
        True
    """


# Note [Tensors of loaded programs]
# A loaded module registers writable copies of the file's parameters and buffers, and runs the program with the registered
# tensors. So the parameters get gradients, and load_state_dict, optimizers and assignments change the results. A program
# is bound to its tensors, so assigning another tensor makes another program in the next call. A tensor of the program that
# is the gradient of a parameter is not registered, but becomes the `grad` of the parameter.


class LoadedModule(ScriptModule):
    """A module that runs a program read from a file, in the mode (training or evaluation) in which the program was saved.

    `train()` does not change the results. The module has the parameters and buffers that the program uses, under their names
    in the original module. Calls use the current values of these parameters and buffers, so the module can be
    trained, and `load_state_dict` changes its results. If the program includes a backward pass, the
    parameters do not require gradients. A call raises TypeError if the structure of the arguments differs
    from that of the example inputs. A call raises ValueError if a parameter or buffer was replaced by a
    tensor of another dtype or shape.

    Example:
        >>> torch.jit.save(torch.jit.trace(nn.Linear(2, 1), torch.ones(3, 2)), "linear.pt")
        >>> loaded = torch.jit.load("linear.pt")
        >>> type(loaded).__name__, sorted(loaded.state_dict())
        ('LoadedModule', ['bias', 'weight'])
        >>> loaded(torch.ones(3, 2)).sum().backward()
        >>> loaded.weight.grad
        tensor([[3., 3.]])
    """

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        object.__setattr__(self, "_read", program)
        object.__setattr__(self, "_bound", None)
        trains = str(program).startswith("program(  # with its gradients")
        constants = program.program.constants()
        parameters = {name: tensor for name, kind, tensor in constants if kind == "parameter"}
        for name, kind, tensor in constants:
            owner, _, field = name.rpartition(".")
            if kind == "parameter":
                differentiable = tensor.is_floating_point() or tensor.is_complex()
                parameter = Parameter(tensor.clone(), requires_grad=differentiable and not trains)
                self._folder(owner).register_parameter(field, parameter)
            elif kind == "buffer" and not (field == "grad" and owner in parameters):
                self._folder(owner).register_buffer(field, tensor.clone())
        for name, kind, tensor in constants:
            owner, _, field = name.rpartition(".")
            if kind == "buffer" and field == "grad" and owner in parameters:
                _registered(self, owner).grad = tensor.clone()

    def _folder(self, path: str) -> Module:
        module: Module = self
        for folder in path.split(".") if path else ():
            if folder not in module._modules:
                module.add_module(folder, Module())
            module = module._modules[folder]
        return module

    def _bind(self) -> _Bound:
        """Return the program, bound to the current parameters and buffers of the module."""
        bound: _Bound | None = self._bound
        if bound is None:
            constants = self._read.program.constants()
            names = [None if kind == "constant" else name for name, kind, _ in constants]
            fixed = [tensor for _, _, tensor in constants]
            bound = _Bound(names, fixed, self._read, self._read.module())
        tensors = [
            tensor if name is None else _registered(self, name)
            for name, tensor in zip(bound.names, bound.tensors, strict=True)
        ]
        if any(tensor is not known for tensor, known in zip(tensors, bound.tensors, strict=True)):
            program = ExportedProgram(
                Program.of(self._read.graph, tensors).with_metadata(self._read.program.metadata())
            )
            bound = _Bound(bound.names, tensors, program, program.module())
        object.__setattr__(self, "_bound", bound)
        return bound

    @property
    def program(self) -> ExportedProgram:
        """The program with the current parameters and buffers."""
        return self._bind().program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._bind().run(*args, **kwargs)

    @property
    def code(self) -> str:
        """The operators of the program as text."""
        return str(self.program)

    graph = code

    def save(self, f: File, _extra_files: dict[str, str | bytes] | None = None) -> None:
        """Save as a program: see `jit.save`."""
        from rushlight.jit._traced import save

        save(self, f, _extra_files)

    def _apply(self, fn: Any, recurse: bool = True) -> LoadedModule:
        tensors = [*self.parameters(), *self.buffers()]
        with core.no_grad():
            if any(fn(tensor) is not tensor for tensor in tensors):
                raise NotImplementedError(
                    "jit: a loaded program cannot change its device, dtypes or memory format\n"
                    "hint: convert the module before it is traced"
                )
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotImplementedError("jit: a loaded program cannot be copied\nhint: load the file again")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("jit: a loaded program cannot be pickled\nhint: call jit.save(module, file)")


def _registered(module: Module, name: str) -> Tensor:
    found = functools.reduce(getattr, name.split("."), module)
    if not isinstance(found, Tensor):
        raise TypeError(f"jit: the program needs the tensor '{name}', got {type(found).__name__}")
    return found


def load(
    f: File,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> LoadedModule:
    """Read a program that `save` or `export.save` wrote, and return it as a module.

    Args:
        f: a path or an open binary file.
        map_location: must be None or the CPU.
        _extra_files: a dict whose keys are names of files that were passed to `save`. `load` sets the values
            to the contents of these files, as bytes.
        _restore_shapes: has no effect, because programs contain the shapes of all values.

    Raises:
        NotImplementedError: the file was written by TorchScript and contains code, or `map_location` is
            another device.
        ValueError: the file is not a program, or is damaged.

    Example:
        >>> torch.jit.save(torch.jit.trace(nn.ReLU(), torch.ones(3)), "relu.pt")
        >>> torch.jit.load("relu.pt")(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0., 0., 1.])
    """
    if map_location is not None and core.device(map_location).type != "cpu":
        raise NotImplementedError(f"jit.load(map_location): programs run on the CPU, got {map_location!r}")
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            _refuse_archives(file.read(4))
    else:
        start = f.tell()
        _refuse_archives(f.read(4))
        f.seek(start)
    texts: dict[str, str] = dict.fromkeys(_extra_files or (), "")
    program = load_program(f, extra_files=texts)
    if _extra_files is not None:
        _extra_files.update({name: text.encode() for name, text in texts.items()})
    return LoadedModule(program)


def _refuse_archives(start: bytes) -> None:
    if start == b"PK\x03\x04":
        raise NotImplementedError(
            "jit.load(): TorchScript's files contain code, which cannot be run\n"
            "hint: create the model in Python and load its weights, which PyTorch saves by"
            " torch.save(torch.jit.load(path).state_dict(), new)"
        )
