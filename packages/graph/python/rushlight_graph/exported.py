"""`export`, `save` and `load`, with PyTorch's names, on programs of our own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn

from rushlight_core import Tensor
from rushlight_graph import trees
from rushlight_graph._C import Program
from rushlight_graph.capture import capture, capture_sizes

File = str | os.PathLike[str] | IO[bytes]
_EXTRA = "extra:"


class ExportedProgram:
    """A captured module: a graph of operators with the tensors that belong to it.

    `print(program)` shows a line for each operator, with the line of the source and the module that called it.
    """

    def __init__(
        self, program: Program, example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    ) -> None:
        self.program = program
        #: The arguments that it was captured with; None after `load`.
        self.example_inputs = example_inputs

    def module(self) -> ProgramModule:
        """The program as something to call, with the arguments of the module that was captured."""
        return ProgramModule(self.program)

    def simplify(self) -> ExportedProgram:
        """A program that does the same with fewer operators.

        Calls of constants alone become constants, a call that was made before is not made again, and what nobody sees
        is left out. Results are the same bit for bit on this kind of processor.
        """
        return ExportedProgram(self.program.simplified(), self.example_inputs)

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Its parameters and buffers by name: those that it uses."""
        return {name: tensor for name, kind, tensor in self.program.constants() if kind != "constant"}

    @property
    def constants(self) -> dict[str, Tensor]:
        """Tensors from outside that are neither arguments, parameters nor buffers."""
        return dict(self._of_kind("constant"))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors of its parameters."""
        return self._of_kind("parameter")

    def parameters(self) -> Iterator[Tensor]:
        """Its parameters."""
        return (tensor for _, tensor in self._of_kind("parameter"))

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors of its buffers."""
        return self._of_kind("buffer")

    def buffers(self) -> Iterator[Tensor]:
        """Its buffers."""
        return (tensor for _, tensor in self._of_kind("buffer"))

    def _of_kind(self, wanted: str) -> Iterator[tuple[str, Tensor]]:
        return ((name, tensor) for name, kind, tensor in self.program.constants() if kind == wanted)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ExportedProgram: it is data, and is not called\nhint: call what module() returns")

    def __str__(self) -> str:
        return self.program.text()


class ProgramModule:
    """A program as a function of the module's arguments.

    What the program writes to its buffers stays written, as in the module.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        metadata = program.metadata()
        try:
            self._arguments = json.loads(metadata["arguments"])
            self._results = json.loads(metadata["results"])
        except (KeyError, ValueError):
            raise ValueError("program: it does not say how Python's arguments make its inputs") from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = trees.Flattening("program")
        structure = given.arguments(args, kwargs)
        if structure != self._arguments:
            raise TypeError(
                f"program: the arguments have the structure {_shown(structure)}, it was captured with"
                f" {_shown(self._arguments)}\nhint: numbers and strings belong to the program"
            )
        return trees.unflatten(self._results, self._program.run([tensor for _, tensor in given.tensors]))


def _shown(structure: Any) -> str:
    ((kind, content),) = structure.items()
    if kind in ("tensor", "value"):
        return "tensor" if kind == "tensor" else repr(content)
    if kind in ("tuple", "list"):
        return f"[{', '.join(map(_shown, content))}]"
    return f"{{{', '.join(f'{key}: {_shown(part)}' for key, part in content)}}}"


def export(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Calls a module once and makes a program of the operators that it called.

    The program does the same for any values of the arguments, of their dtypes and shapes. Reading a
    value (`if x.sum() > 0`, `.item()`, `print`) is an error that names the line, since the program could not follow.
    The module is left as it was, and so is the random state.

    Args:
        mod: a module; its `training` flag decides, as in any call.
        args: its positional arguments: tensors, numbers, strings and None, in tuples, lists and dicts. Tensors become
            inputs.
        kwargs: its keyword arguments.
        dynamic_shapes: sizes of the arguments that change from call to call: a dict by the arguments' names, or an entry for
            each argument in their order. For a tensor it is a dict from dimensions to `Dim`, or an entry for each
            dimension; None stays as it is. The module is then called six times, with inputs of other sizes made of the
            examples, and integers that differ are explained by expressions of these sizes.
        strict: accepted for both values. PyTorch reads Python's bytecode where it is true; here the module always runs.
        preserve_module_call_signature: must be empty: modules are not called by themselves in the program.
        prefer_deferred_runtime_asserts_over_guards: must be False: what a program assumes is checked in each run.

    Raises:
        TypeError: `mod` is no module, or an argument is of a type that a program cannot hold.
        ValueError: `dynamic_shapes` does not fit the arguments.
        RuntimeError: a value is read, a tensor is written that is neither input, parameter nor buffer, or the module calls
            other operators with other sizes.
        NotImplementedError: what cannot be captured yet: gradients, autocast, vmap, devices but the CPU.
    """
    if preserve_module_call_signature:
        raise NotImplementedError(
            "export(preserve_module_call_signature): modules are not kept apart in a program"
        )
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("export(prefer_deferred_runtime_asserts_over_guards): must be False")
    return capture_module(mod, args, kwargs, dynamic_shapes)


def capture_module(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    expanded: Sequence[str] = (),
) -> ExportedProgram:
    """What `export` does; of the composites in `expanded`, the operators that they call are recorded."""
    if not hasattr(mod, "named_parameters") or not callable(mod):
        raise TypeError(
            f"export(mod): must be a module, got {type(mod).__name__}\nhint: make a function the forward of a Module"
        )
    if not isinstance(args, tuple):
        raise TypeError(
            f"export(args): must be a tuple, got {type(args).__name__}\nhint: (x,) has one element"
        )
    named = dict(kwargs or {})
    state = [(name, "parameter", tensor) for name, tensor in mod.named_parameters()]
    state += [(name, "buffer", tensor) for name, tensor in mod.named_buffers()]
    with _no_member_replaced(mod):
        if dynamic_shapes is None:
            program = capture(mod, args, named, state, mod, expanded)
        else:
            program = capture_sizes(mod, args, named, state, mod, dynamic_shapes, expanded)
    return ExportedProgram(program, (args, named))


@contextmanager
def _no_member_replaced(mod: Any) -> Iterator[None]:
    """Puts parameters and buffers back that are assigned to inside, and raises NotImplementedError then."""

    def members() -> dict[str, Tensor]:
        return {**dict(mod.named_parameters()), **dict(mod.named_buffers())}

    before = members()
    yield
    after = members()
    replaced = [name for name, tensor in before.items() if after.get(name) is not tensor]
    for name in replaced:
        path, _, attribute = name.rpartition(".")
        owner = mod
        for part in path.split(".") if path else ():
            owner = getattr(owner, part)
        setattr(owner, attribute, before[name])
    if replaced:
        raise NotImplementedError(
            f"export: the module replaces '{replaced[0]}' by another tensor, which cannot be captured so far\n"
            "hint: write into it, as by copy_()"
        )


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, str] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Writes a program to one file, a safetensors file with the graph in its header.

    Args:
        ep: the program.
        f: a path, which the file replaces when it is complete, or an open binary file.
        extra_files: texts that `load` gives back, by name.
        opset_version: must be None: a program names the operators that it needs one by one.
        pickle_protocol: must be 2, the default: nothing is pickled.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"export.save(ep): must be an ExportedProgram, got {type(ep).__name__}")
    if opset_version is not None or pickle_protocol != 2:
        raise NotImplementedError(
            "export.save(opset_version, pickle_protocol): have no meaning for these files"
        )
    program = ep.program
    if extra_files:
        texts = {_EXTRA + name: text for name, text in extra_files.items()}
        program = program.with_metadata(program.metadata() | texts)
    if isinstance(f, (str, os.PathLike)):
        program.save(os.fspath(f))
    else:
        f.write(program.to_bytes())


def load(
    f: File,
    *,
    extra_files: dict[str, str] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """The program of a file that `save` wrote. The tensors of a path are mapped, not copied.

    Args:
        f: a path or an open binary file.
        extra_files: a dict whose keys name texts that `save` was given: their values are filled in.
        expected_opset_version: must be None, as for `save`.

    Raises:
        ValueError: the file is no program, or is damaged.
        RuntimeError: it cannot be opened, or needs an operator that this library lacks.
    """
    if expected_opset_version is not None:
        raise NotImplementedError("export.load(expected_opset_version): has no meaning for these files")
    path = isinstance(f, (str, os.PathLike))
    program = Program.load(os.fspath(f)) if path else Program.from_bytes(f.read())  # type: ignore[arg-type, union-attr]
    metadata = program.metadata()
    for name in extra_files or ():
        if _EXTRA + name not in metadata:
            raise ValueError(f"export.load(extra_files): the file has no text '{name}'")
        extra_files[name] = metadata[_EXTRA + name]  # type: ignore[index]
    return ExportedProgram(program)
