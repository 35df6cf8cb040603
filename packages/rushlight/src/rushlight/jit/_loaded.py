"""Modules that run a loaded program."""

from __future__ import annotations

import os
from typing import IO, Any, NoReturn

import rushlight_core as core
from rushlight_graph import ExportedProgram
from rushlight_graph import load as load_program
from rushlight_nn import Module, Parameter

__all__ = ["LoadedModule", "ScriptModule", "load"]

File = str | os.PathLike[str] | IO[bytes]


class ScriptModule(Module):
    """Base class of modules that `trace` and `load` return. Modules may derive from it; they are not compiled.

    Example:
        >>> isinstance(torch.jit.trace(nn.ReLU(), torch.ones(2)), torch.jit.ScriptModule)
        True
    """


class LoadedModule(ScriptModule):
    """A program read from a file. It computes the results of the module in the mode in which the module was saved.

    `train()` raises no error and changes nothing. It has the parameters and buffers that the program uses, under the
    names in the module; they are mapped from the file and read-only. The call raises TypeError if the arguments have
    another structure than those with which the program was captured.

    Example:
        >>> torch.jit.save(torch.jit.trace(nn.Linear(2, 1), torch.ones(3, 2)), "linear.pt")
        >>> loaded = torch.jit.load("linear.pt")
        >>> type(loaded).__name__, sorted(loaded.state_dict())
        ('LoadedModule', ['bias', 'weight'])
    """

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        object.__setattr__(self, "program", program)
        object.__setattr__(self, "_run", program.module())
        for name, kind, tensor in program.program.constants():
            if kind == "constant":
                continue
            *folders, field = name.split(".")
            module: Module = self
            for folder in folders:
                if folder not in module._modules:
                    module.add_module(folder, Module())
                module = module._modules[folder]
            if kind == "parameter":
                module.register_parameter(field, Parameter(tensor, requires_grad=tensor.is_floating_point()))
            else:
                module.register_buffer(field, tensor)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    @property
    def code(self) -> str:
        """The operators of the program as text."""
        return str(self.program)

    graph = code

    def save(self, f: File, _extra_files: dict[str, str | bytes] | None = None) -> None:
        """Save as a program: see `jit.save`."""
        from rushlight.jit._traced import save

        save(self, f, _extra_files)

    def _apply(self, fn: Any, recurse: bool = True) -> NoReturn:
        raise NotImplementedError(
            "jit: a loaded program cannot change its device or dtypes\nhint: convert the module before it is traced"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        raise NotImplementedError("jit: a loaded program cannot be copied\nhint: load it again")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("jit: a loaded program cannot be pickled\nhint: jit.save(module, file) writes it")


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
        _extra_files: a dict whose keys name files that were passed to `save`; `load` sets their contents, as bytes.
        _restore_shapes: has no effect: programs contain the shapes of all values.

    Raises:
        NotImplementedError: the file was written by TorchScript and holds code, or `map_location` is another device.
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
        place = f.tell()
        _refuse_archives(f.read(4))
        f.seek(place)
    texts: dict[str, str] = dict.fromkeys(_extra_files or (), "")
    program = load_program(f, extra_files=texts)
    if _extra_files is not None:
        _extra_files.update({name: text.encode() for name, text in texts.items()})
    return LoadedModule(program)


def _refuse_archives(start: bytes) -> None:
    if start == b"PK\x03\x04":
        raise NotImplementedError(
            "jit.load(): TorchScript's files hold code, which cannot be run\n"
            "hint: make the model in Python and load its weights, which PyTorch saves by"
            " torch.save(torch.jit.load(path).state_dict(), new)"
        )
