"""The functions `export`, `save` and `load` for programs, with the interface of `torch.export`."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn

import rushlight_core as core
from rushlight_core import Tensor, pytree
from rushlight_graph import dynamic, trees
from rushlight_graph._C import Graph, Program
from rushlight_graph.capture import capture, capture_sizes
from rushlight_graph.members import Members
from rushlight_graph.training import Optimizers

File = str | os.PathLike[str] | IO[bytes]
_EXTRA = "extra:"
_SHARED = "shared"  # the metadata with further names of shared parameters and buffers


class ExportedProgram:
    """A captured module: a graph of operators, with its parameters, buffers and constants.

    `print(program)` shows a line for each operator, with the source line and the module that called it. `program.module()`
    returns a function that runs the program; calling the program itself raises RuntimeError.

    Shape:
        - Arguments of `module()` have the shapes with which the program was captured, except for the sizes that
          `dynamic_shapes` marked.

    Example:
        >>> program = torch.export.export(nn.Linear(2, 3), (torch.ones(4, 2),))
        >>> sorted(program.state_dict)
        ['bias', 'weight']
        >>> program.module()(torch.zeros(4, 2)).shape
        torch.Size([4, 3])
    """

    def __init__(
        self, program: Program, example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    ) -> None:
        self.program = program
        #: The arguments with which the program was captured; None after `load`.
        self.example_inputs = example_inputs

    def module(self) -> ProgramModule:
        """Return the program as a callable that takes the arguments of the captured module."""
        return ProgramModule(self.program)

    def simplify(self, *, fold_batch_norm: bool = False) -> ExportedProgram:
        """Return an equivalent program with fewer operators.

        A call whose arguments are all constants, parameters or buffers is replaced by its result. Repeated
        calls are merged, and calls without effect are removed. Unused parameters are removed. Unless
        `fold_batch_norm` is true, the new program returns the same results bit for bit, if it runs on the
        same kind of processor as the call of `simplify`.

        Args:
            fold_batch_norm: whether to fold batch norms into the weights of the convolutions before them. A
                batch norm is folded if it is in evaluation mode, nothing else uses the result of the
                convolution, and neither layer is in a branch or loop. Folding changes the last digits of
                results. A program that computes gradients no longer computes them for the parameters of the
                folded layers.

        Example:
            >>> model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
            >>> program = torch.export.export(model, (torch.zeros(1, 3, 8, 8),)).simplify(fold_batch_norm=True)
            >>> list(program.constants)
            ['0.weight.folded', '0.weight.folded_bias']
        """
        return ExportedProgram(self.program.simplified(fold_batch_norm), self.example_inputs)

    @property
    def graph(self) -> Graph:
        """The operators of the program, without its tensors.

        `str(graph)` is a text that `Graph.parse` can read, `graph.svg()` returns a drawing, and
        `graph.differences(other)` lists the differences from another graph.
        """
        return self.program.structure()

    def with_graph(self, graph: Graph) -> ExportedProgram:
        """Return a program with the operators of `graph` and with those tensors of this program that `graph` uses.

        Raises:
            ValueError: the graph uses a tensor that this program does not have, or that has another type in this program.
        """
        tensors = {name: tensor for name, _, tensor in self.program.constants()}
        missing = [name for name in graph.constants() if name not in tensors]
        if missing:
            raise ValueError(f"with_graph(graph): the program has no tensor '{missing[0]}'")
        program = Program.of(graph, [tensors[name] for name in graph.constants()])
        return ExportedProgram(program.with_metadata(self.program.metadata()), self.example_inputs)

    @property
    def state_dict(self) -> dict[str, Tensor]:
        """Return the parameters and buffers that the program uses, by name. Shared ones have all names of the module."""
        found = {name: tensor for name, kind, tensor in self.program.constants() if kind != "constant"}
        shared = json.loads(self.program.metadata().get(_SHARED, "{}"))
        return found | {other: found[name] for other, name in shared.items() if name in found}

    @property
    def constants(self) -> dict[str, Tensor]:
        """The tensors of the program that are neither parameters nor buffers."""
        return dict(self._of_kind("constant"))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and tensors of the parameters."""
        return self._of_kind("parameter")

    def parameters(self) -> Iterator[Tensor]:
        """Yield the parameters."""
        return (tensor for _, tensor in self._of_kind("parameter"))

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the names and tensors of the buffers."""
        return self._of_kind("buffer")

    def buffers(self) -> Iterator[Tensor]:
        """Yield the buffers."""
        return (tensor for _, tensor in self._of_kind("buffer"))

    def _of_kind(self, wanted: str) -> Iterator[tuple[str, Tensor]]:
        return ((name, tensor) for name, kind, tensor in self.program.constants() if kind == wanted)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ExportedProgram: cannot be called\nhint: call the module that module() returns")

    def __str__(self) -> str:
        return self.program.text()

    def __reduce__(self) -> tuple[Any, ...]:
        # Deep copies and pickles contain the tensors of the program.
        program = self.program
        tensors = [tensor for _, _, tensor in program.constants()]
        return _assembled, (str(self.graph), tensors, program.metadata(), self.example_inputs)


def _assembled(
    text: str, tensors: list[Tensor], metadata: dict[str, str], example_inputs: Any
) -> ExportedProgram:
    program = Program.of(Graph.parse(text), tensors).with_metadata(metadata)
    return ExportedProgram(program, example_inputs)


class ProgramModule:
    """A callable that takes the arguments of the captured module and runs the program on them.

    If the program changes its buffers, the changes persist from call to call, as in the module.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        metadata = program.metadata()
        try:
            self._arguments = json.loads(metadata["arguments"])
            self._results = json.loads(metadata["results"])
        except (KeyError, ValueError, RecursionError):
            raise ValueError(
                "program: the file does not describe how Python's arguments correspond to the program's inputs"
            ) from None
        trees.check("arguments", self._arguments, len(program.inputs()))
        trees.check("results", self._results, program.outputs())

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramModule._of, (ExportedProgram(self._program),)

    @staticmethod
    def _of(program: ExportedProgram) -> ProgramModule:
        return program.module()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return trees.unflatten(self._results, self.tensors(*args, **kwargs))

    def tensors(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Run the program and return the tensors in its result."""
        tensors: dict[int, Tensor] = {}
        if not trees.matches(self._arguments, [list(args), kwargs], tensors):
            raise TypeError(self._mismatch(trees.Flattening("program").arguments(args, kwargs)))
        return self._program.run([tensors[i] for i in sorted(tensors)])

    def _mismatch(self, structure: Any) -> str:
        given, wanted = trees.shown(structure), trees.shown(self._arguments)
        hint = "numbers and strings are constants of the program"
        if given == wanted:
            given, wanted = trees.shown(structure, numbers=True), trees.shown(self._arguments, numbers=True)
            hint = "the example passed one tensor several times; export with copies to pass different tensors"
        return f"program: the arguments have the structure {given}, but must have {wanted}\nhint: {hint}"


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
    """Call a module once and capture the operators that it calls as a program.

    For arguments with the dtypes and shapes of the examples, the program computes the same results as the module, whatever
    the values of the arguments. If the module reads the value of a tensor (`if x.sum() > 0`, `.item()`, `print`), `export`
    raises an error that names the line, because a program cannot depend on this value. `export` changes neither the module
    nor the state of the default generator.

    Args:
        mod: a module, captured in its current mode (`training`).
        args: the positional arguments of the module: tensors, numbers, strings, dtypes and None, in tuples,
            named tuples, lists, dicts and classes that `register_dataclass` or
            `utils._pytree.register_pytree_node` registered. Tensors become inputs. Calls of the program must
            pass the other arguments with the same values and types.
        kwargs: the keyword arguments of the module.
        dynamic_shapes: the sizes that may differ from call to call. Pass a dict from the names of arguments
            to entries, or a sequence with an entry for each argument, in order. An entry for a tensor is a
            dict from dimensions to `Dim`, or a sequence with an entry for each dimension; None marks a size
            that does not change. If `dynamic_shapes` is given, `export` calls the module at least eight
            times, with inputs of different sizes that it makes from the examples. An integer that differs
            between these calls becomes an expression of the dynamic sizes.
        strict: has no effect. The module is always run, as with `strict=False` in PyTorch, where `strict=True` analyzes
            Python's bytecode.
        preserve_module_call_signature: must be empty, because a program does not contain calls of submodules.
        prefer_deferred_runtime_asserts_over_guards: must be False, because each run checks the assumptions of a
            program.

    Shape:
        - Tensors in `args` and `kwargs`: (*), of any shape; the program accepts only these shapes, except for sizes that
          `dynamic_shapes` marks.

    Raises:
        TypeError: `mod` is not a module, or the type of an argument is not supported.
        ValueError: `dynamic_shapes` does not match the structure or the sizes of the arguments.
        RuntimeError: the module reads the value of a tensor, writes to a tensor that is not an input, parameter or buffer,
            or calls different operators for different sizes.
        NotImplementedError: the module uses a feature that cannot be captured yet, such as a device other than the CPU or a
            random generator of its own, or a call of the module changes what the next call computes, other than by
            changing buffers.

    Example:
        >>> program = torch.export.export(nn.Softmax(-1), (torch.zeros(2, 4),))
        >>> program.module()(torch.zeros(2, 4))[0]
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    if preserve_module_call_signature:
        raise NotImplementedError(
            "export(preserve_module_call_signature): must be empty, because a program does not contain calls of submodules"
        )
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("export(prefer_deferred_runtime_asserts_over_guards): must be False")
    return capture_module(mod, args, kwargs, dynamic_shapes)


def register_dataclass(cls: type[Any], *, serialized_type_name: str | None = None) -> None:
    """Register a dataclass, so that its instances can be arguments and results of programs.

    A process that runs a program from a file must register the same classes beforehand.

    Args:
        cls: the dataclass.
        serialized_type_name: the name of the class in files, by default its module and its name.

    Raises:
        TypeError: `cls` is not a dataclass.
        ValueError: the class is registered already.

    Example:
        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Pair:
        ...     left: torch.Tensor
        ...     right: torch.Tensor
        >>> torch.export.register_dataclass(Pair)
        >>> class Swap(nn.Module):
        ...     def forward(self, pair):
        ...         return Pair(pair.right * 1, pair.left * 1)
        >>> program = torch.export.export(Swap(), (Pair(torch.ones(1), torch.zeros(1)),))
        >>> program.module()(Pair(torch.tensor([1.0]), torch.tensor([2.0])))
        Pair(left=tensor([2.]), right=tensor([1.]))
    """
    pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)


def capture_module(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    expanded: Sequence[str] = (),
) -> ExportedProgram:
    """Export a module. For a composite operator in `expanded`, record the operators that it calls."""
    if isinstance(mod, type):
        raise TypeError(
            f"export(mod): must be a module, got the class {mod.__name__}\nhint: create a module of this class"
        )
    if not hasattr(mod, "named_parameters") or not callable(mod):
        raise TypeError(
            f"export(mod): must be a module, got {type(mod).__name__}\nhint: make a function the forward of a Module"
        )
    if not isinstance(args, tuple):
        raise TypeError(
            f"export(args): must be a tuple, got {type(args).__name__}\nhint: write (x,) for one argument"
        )
    named = dict(kwargs or {})
    state = [(name, "parameter", tensor) for name, tensor in mod.named_parameters()]
    state += [(name, "buffer", tensor) for name, tensor in mod.named_buffers()]
    optimizers = Optimizers(mod)
    state += optimizers.state()
    members = Members(mod)

    @contextmanager
    def unchanged() -> Iterator[None]:
        with members.restored(), optimizers.unchanged(), _without_random_numbers(), _modes_restored():
            yield

    if dynamic_shapes is None:
        program = capture(
            mod, args, named, state, mod, expanded, bool(optimizers), unchanged, members.carried
        )
    else:
        program = capture_sizes(
            mod,
            args,
            named,
            state,
            mod,
            dynamic_shapes,
            expanded,
            bool(optimizers),
            unchanged,
            members.carried,
        )
    members.check(tensor for _, kind, tensor in program.constants() if kind == "constant")
    if members.changed and not optimizers:
        _check_second_call(mod, args, named, state, members, program, dynamic_shapes)
    if shared := _shared_names(mod, state):
        program = program.with_metadata(program.metadata() | {_SHARED: json.dumps(shared)})
    return ExportedProgram(program, (args, named))


def _shared_names(mod: Any, state: Sequence[tuple[str, str, Tensor]]) -> dict[str, str]:
    """Return each further name of a parameter or buffer in the module's `state_dict`, with the name in `state`."""
    if not hasattr(mod, "state_dict"):
        return {}
    first = {id(tensor): name for name, _, tensor in state}
    every = mod.state_dict(keep_vars=True).items()
    return {name: first[id(tensor)] for name, tensor in every if first.get(id(tensor), name) != name}


@contextmanager
def _modes_restored() -> Iterator[None]:
    """Restore the gradient mode and the default dtype after the block."""
    gradients, dtype = core.is_grad_enabled(), core.get_default_dtype()
    try:
        yield
    finally:
        core.set_grad_enabled(gradients)
        core.set_default_dtype(dtype)


@contextmanager
def _without_random_numbers() -> Iterator[None]:
    """Raise NotImplementedError if the block draws random numbers with Python or NumPy."""
    numpy: Any = sys.modules.get("numpy")
    states = {"random": (random.getstate, random.setstate)}
    if hasattr(numpy, "random"):
        states["numpy.random"] = (numpy.random.get_state, numpy.random.set_state)
    before = {name: get() for name, (get, _) in states.items()}
    changed: list[str] = []
    try:
        yield
    finally:
        for name, (get, put) in states.items():
            if not _same_state(get(), before[name]):
                changed.append(name)
                put(before[name])
    if changed:
        raise NotImplementedError(
            f"export: the module draws numbers from '{changed[0]}', which a program cannot do, so each run "
            "would use the numbers that were drawn during the capture\nhint: draw them with torch.rand or "
            "torch.randint, and use torch.where or torch.cond instead of `if`"
        )


def _same_state(state: Any, other: Any) -> bool:
    return all(
        bool((a == b).all()) if hasattr(a, "all") else a == b for a, b in zip(state, other, strict=True)
    )


def _check_second_call(
    mod: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    state: Any,
    members: Members,
    program: Program,
    dynamic_shapes: Any,
) -> None:
    """Raise NotImplementedError if a second call of the module and a run of the program have different results.

    The arguments of the second call are the examples with their elements in reverse order. Nothing is checked
    if this call fails, or if the program contains branches or loops, whose results in a capture differ from
    those in a run.
    """
    changed = list(members.changed)
    graph = json.loads(program.graph())
    if any("control" in node for node in graph["nodes"]):
        return
    written = {constant["name"] for constant in graph["constants"] if constant.get("written")}
    copy = Program.of(
        program.structure(), [t.clone() if name in written else t for name, _, t in program.constants()]
    ).with_metadata(program.metadata())
    tensors = trees.Flattening("export")
    tensors.arguments(args, kwargs)
    others = {id(t): t.detach().flip(*range(t.dim())) if t.dim() else t.detach() for _, t in tensors.tensors}
    given = [dynamic.replaced(args, others), dynamic.replaced(kwargs, others)]
    clones = {id(t): t.clone() for t in others.values()}
    runs = [dynamic.replaced(value, clones) for value in given]
    results: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        results[:] = [mod(*args, **kwargs)]
        found = trees.Flattening("export")
        found.structure(results[0], "the result")
        results[:] = [[tensor.clone() for _, tensor in found.tensors]]
        return results[0]

    drawn = core.get_rng_state()
    try:
        if dynamic_shapes is not None:  # the last capture had other sizes
            capture(mod, args, kwargs, state, mod, (), False, members.restored)
        with members.as_left():
            capture(call, given[0], given[1], state, mod, (), False, members.restored)
        core.set_rng_state(drawn)
        made = ProgramModule(copy).tensors(*runs[0], **runs[1])
    except Exception:
        return
    finally:
        core.set_rng_state(drawn)
    if len(made) != len(results[0]) or not all(map(_identical, made, results[0])):
        raise NotImplementedError(
            f"export: each call of the module changes '{changed[0]}', on which the results depend, so "
            "a second run of the program would differ from a second call of the module\n"
            "hint: register a tensor as a buffer in its place, and change the tensor in place, for example with add_()"
        )


def _identical(a: Tensor, b: Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    both_nan = (a != a) & (b != b)
    return bool((both_nan | (a == b)).all())


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, str] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write a program to one file: a safetensors file with the graph in its header.

    Args:
        ep: the program.
        f: a path, or an open binary file. An existing file at the path is replaced when the new file is complete.
        extra_files: a dict from names to texts, which are also written to the file; `load` reads them.
        opset_version: must be None, because the file lists each operator of the program instead of opset versions.
        pickle_protocol: must be 2, the default, and has no effect, because nothing is pickled.

    Raises:
        TypeError: `ep` is not an ExportedProgram.
        NotImplementedError: `opset_version` is not None, or `pickle_protocol` is not 2.

    Example:
        >>> program = torch.export.export(nn.ReLU(), (torch.ones(3),))
        >>> torch.export.save(program, "relu.pt2")
        >>> torch.export.load("relu.pt2").module()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0., 0., 1.])
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"export.save(ep): must be an ExportedProgram, got {type(ep).__name__}")
    if opset_version is not None or pickle_protocol != 2:
        raise NotImplementedError(
            "export.save(opset_version, pickle_protocol): must have their default values, None and 2"
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
    """Read a program from a file that `save` wrote. If `f` is a path, the tensors are mapped to memory.

    Args:
        f: a path or an open binary file.
        extra_files: a dict whose keys are names from the `extra_files` of `save`; `load` sets each value to the text that
            was saved under this name.
        expected_opset_version: must be None, as for `save`.

    Raises:
        ValueError: the file is not a program, is damaged, or contains no text under a name in `extra_files`.
        RuntimeError: the file cannot be opened, or needs an operator that this library lacks.
        NotImplementedError: `expected_opset_version` is not None.

    Example:
        >>> program = torch.export.export(nn.ReLU(), (torch.ones(3),))
        >>> torch.export.save(program, "relu.pt2", extra_files={"note": "a small one"})
        >>> texts = {"note": ""}
        >>> loaded = torch.export.load("relu.pt2", extra_files=texts)
        >>> texts
        {'note': 'a small one'}
    """
    if expected_opset_version is not None:
        raise NotImplementedError(
            "export.load(expected_opset_version): must be None, because the files have no opset versions"
        )
    path = isinstance(f, (str, os.PathLike))
    program = Program.load(os.fspath(f)) if path else Program.from_bytes(f.read())  # type: ignore[arg-type, union-attr]
    metadata = program.metadata()
    for name in extra_files or ():
        if _EXTRA + name not in metadata:
            raise ValueError(f"export.load(extra_files): the file contains no extra file '{name}'")
        extra_files[name] = metadata[_EXTRA + name]  # type: ignore[index]
    exported = ExportedProgram(program)
    if "arguments" in metadata:
        exported.module()  # checks the structures of the arguments and results
    return exported
