"""`onnx.export`: convert a module or a program to a model in ONNX."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import IO, Any

import rushlight_core as core
from rushlight_core import Tensor
from rushlight_graph import trees
from rushlight_graph.capture import names_of_parameters
from rushlight_graph.dynamic import Dim
from rushlight_graph.exported import ExportedProgram, capture_module
from rushlight_graph.onnx import functions  # noqa: F401  registers the functions of operators
from rushlight_graph.onnx._operators import COMPOSITES
from rushlight_graph.onnx.builder import Builder, Val, nested
from rushlight_graph.onnx.graph import read
from rushlight_graph.onnx.lowering import Lowering
from rushlight_graph.onnx.model import OPSETS, Model

File = str | os.PathLike[str] | IO[bytes]
_DEFAULT_OPSET = 18
#: Prefix of the keys under which the file stores a program's metadata, such as the structure of Python's
#: arguments.
METADATA = "rushlight."


class OnnxExporterError(RuntimeError):
    """Raised by `export` if a model cannot be exported. The message lists the operators that ONNX lacks.

    Example:
        >>> torch.onnx.export(nn.RReLU().train(), (torch.ones(3),))
        Traceback (most recent call last):
            ...
        rushlight_graph.onnx.exporter.OnnxExporterError: ...
    """


class OnnxLoadError(ValueError):
    """Raised by `load` if a file is not a model, or uses features that `load` does not support.

    Example:
        >>> import io
        >>> from rushlight_graph.onnx import load
        >>> load(io.BytesIO(b"no model"))
        Traceback (most recent call last):
            ...
        rushlight_graph.onnx.exporter.OnnxLoadError: ...
    """


class TrainingMode(Enum):
    """The mode in which a model is exported, for the argument `training` of `export`.

    `export` does not change the module's mode and accepts only EVAL, the default.

    Example:
        >>> TrainingMode.EVAL.value
        0
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """Values of the argument `operator_export_type` of `export`, which accepts only ONNX.

    Example:
        >>> int(OperatorExportTypes.ONNX)
        0
    """

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_exporting = False


def is_in_onnx_export() -> bool:
    """Return whether a model is being exported to ONNX.

    Example:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return _exporting


class ONNXProgram:
    """A model in ONNX format, returned by `export`.

    Call the object with the input tensors to run the model with onnxruntime. The result is a list of tensors. The call
    raises ImportError if onnxruntime is not installed, and TypeError if the number of tensors differs from the number of
    inputs.

    Shape:
        - Tensors: the shapes of the exported program; sizes that `dynamic_shapes` marks may differ from call to call.

    Example:
        >>> torch.onnx.export(nn.ReLU(), (torch.ones(3),))
        ONNXProgram(opset 18: 1 Relu)
    """

    def __init__(self, model: Model, exported_program: ExportedProgram) -> None:
        self._model = model
        #: The program that was exported.
        self.exported_program = exported_program

    @property
    def model_proto(self) -> Any:
        """The model as an `onnx.ModelProto`. Reading this property requires the package onnx."""
        onnx = _package("onnx")
        return onnx.load_model_from_string(self._model.to_bytes())

    def save(
        self,
        destination: File,
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Write the model.

        Args:
            destination: a path, or an open binary file.
            include_initializers: must be True.
            keep_initializers_as_inputs: whether the model's constants are also inputs, with their values as defaults.
            external_data: whether tensors of at least 1 KB are written to a second file, whose path ends with ".data". If
                None, a second file is written only if a single file would exceed 2 GB.

        Raises:
            ValueError: the file would have more than 2 GB.
        """
        if not include_initializers:
            raise NotImplementedError("ONNXProgram.save(include_initializers): must be True")
        external = self._model.is_large() if external_data is None else external_data
        self._model.write(destination, external, keep_initializers_as_inputs)

    def __call__(self, *args: Any, **kwargs: Any) -> list[Tensor]:
        """Return the results of onnxruntime, as tensors."""
        runtime = _package("onnxruntime")
        arrays = [tensor.detach().numpy() for tensor in _tensors([args, kwargs])]
        if len(arrays) != len(self._model.inputs):
            raise TypeError(f"ONNXProgram: needs {len(self._model.inputs)} tensors, got {len(arrays)}")
        session = runtime.InferenceSession(self._model.to_bytes(), providers=["CPUExecutionProvider"])
        names = [value.name for value in self._model.inputs]
        results = session.run(None, dict(zip(names, arrays, strict=True)))
        return [core.from_numpy(result) for result in results]

    def __repr__(self) -> str:
        counts: dict[str, int] = {}
        for node in self._model.nodes:
            counts[node.op] = counts.get(node.op, 0) + 1
        inside = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        return f"ONNXProgram(opset {self._model.opset}: {inside})"


def _tensors(tree: Any) -> list[Tensor]:
    """Return a list of the tensors that tuples, lists and dicts contain, in their order."""
    if isinstance(tree, Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _package(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"onnx: this needs the package {name}\nhint: pip install {name}") from None


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: File | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: Any = None,
    custom_translation_table: Mapping[Callable[..., Any], Any] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Any = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[Any] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """Call a module once and convert the operators that it calls to a model in ONNX.

    Args:
        model: a module, or an ExportedProgram.
        args: the module's positional arguments. Tensors become inputs; numbers and strings become constants of the model.
        f: the path to which the model is written, or an open binary file. If None, no file is written.
        kwargs: the module's keyword arguments.
        input_names, output_names: names for the first inputs and outputs, in their order.
        opset_version: the version of ONNX's operators, from 17 to 21; None selects 18.
        external_data: whether tensors of at least 1 KB are written to a second file, whose path ends with ".data". If
            False, the model may have at most 2 GB.
        dynamic_shapes: sizes of the arguments that change from call to call, as for `export.export`. The model contains the
            names of these sizes.
        dynamic_axes: another form of `dynamic_shapes`: a dict from names of inputs to dicts from dimensions to names of
            sizes, or to lists of dimensions. Dimensions with the same name must have the same size. Entries for outputs have
            no effect, because their sizes follow from those of the inputs.
        optimize: whether calls whose arguments are all constants are computed during the export, and repeated calls are
            merged.
        verify: whether to compare the results of onnxruntime for `args` with the results of the program.
        keep_initializers_as_inputs: whether the model's constants are also inputs, with their values as defaults.
        dynamo: must be True. All arguments that are not described here must have their default values.

    Returns:
        The model.

    Raises:
        OnnxExporterError: an operator has no equivalent in ONNX; the message lists all such operators and
            their source lines.
        NotImplementedError: an argument for which only the default value is supported has another value.
        ValueError: the opset version is not supported, a name is repeated, or the file would have more than 2 GB.

    Example:
        >>> model = torch.onnx.export(nn.Linear(2, 3), (torch.ones(4, 2),), input_names=["x"])
        >>> model.save("linear.onnx")
        >>> torch.onnx.load("linear.onnx").module()(torch.ones(4, 2)).shape
        torch.Size([4, 3])
    """
    refused = {
        "verbose": bool(verbose),
        "dynamo": not dynamo,
        "custom_translation_table": bool(custom_translation_table),
        "report": report,
        "profile": profile,
        "dump_exported_program": dump_exported_program,
        "artifacts_dir": os.fspath(artifacts_dir) != ".",
        "export_params": not export_params,
        "training": getattr(training, "value", training) != TrainingMode.EVAL.value,
        "operator_export_type": int(operator_export_type) != OperatorExportTypes.ONNX,
        "do_constant_folding": not do_constant_folding,
        "custom_opsets": bool(custom_opsets),
        "export_modules_as_functions": bool(export_modules_as_functions),
        "autograd_inlining": not autograd_inlining,
    }
    for name, wrong in refused.items():
        if wrong:
            raise NotImplementedError(f"onnx.export({name}): must have its default value")
    opset = _DEFAULT_OPSET if opset_version is None else opset_version
    if opset not in OPSETS:
        raise ValueError(
            f"onnx.export(opset_version): must be from {OPSETS[0]} to {OPSETS[-1]}, got {opset_version!r}"
        )
    args = args if isinstance(args, tuple) else (args,)
    if isinstance(model, ExportedProgram) and (dynamic_axes or dynamic_shapes is not None):
        raise ValueError(
            "onnx.export(dynamic_shapes, dynamic_axes): must be None for an ExportedProgram, whose sizes are fixed or "
            "dynamic already"
        )
    if dynamic_axes:
        if dynamic_shapes is not None:
            raise ValueError("onnx.export(dynamic_axes): must be None if dynamic_shapes is given")
        inputs, outputs = list(input_names or ()), list(output_names or ())
        dynamic_shapes = _shapes_of_axes(model, args, dict(kwargs or {}), dynamic_axes, inputs, outputs)
    if isinstance(model, ExportedProgram):
        program = model
    else:
        with _in_export(), core.no_grad():
            program = capture_module(model, args, kwargs, dynamic_shapes, COMPOSITES)
    made = _lower(program.simplify() if optimize else program, opset, input_names, output_names)
    exported = ONNXProgram(made, program)
    if verify:
        _verify(exported, args, dict(kwargs or {}))
    if f is not None:
        exported.save(f, keep_initializers_as_inputs=keep_initializers_as_inputs, external_data=external_data)
    return exported


def _shapes_of_axes(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_axes: Mapping[str, Any],
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> Any:
    """Return the argument `dynamic_shapes` of `export` that marks the same sizes as `dynamic_axes`."""
    given = trees.Flattening("onnx.export")
    given.arguments(args, kwargs, names_of_parameters(model))
    names = _named([name for name, _ in given.tensors], input_names, "input_names")
    tensors = {name: tensor for name, (_, tensor) in zip(names, given.tensors, strict=True)}
    unknown = set(dynamic_axes) - {*names, *output_names}
    if unknown:
        raise ValueError(
            f"onnx.export(dynamic_axes): {min(unknown)!r} is neither an input nor one of the output_names; the inputs are "
            f"{', '.join(names)}"
        )
    wanted: dict[str, list[tuple[Tensor, int]]] = {}
    for name, axes in dynamic_axes.items():
        if name not in tensors:  # the sizes of outputs follow from those of the inputs
            continue
        rank = tensors[name].dim()
        for dim in axes:
            if not isinstance(dim, int) or not -rank <= dim < rank:
                raise ValueError(f"onnx.export(dynamic_axes): {name!r} has no dimension {dim!r}")
            text = axes[dim] if isinstance(axes, Mapping) else f"{name}_dynamic_axes_{dim % rank}"
            wanted.setdefault(re.sub(r"\W", "_", str(text)), []).append((tensors[name], dim % rank))
    marks: dict[int, dict[int, Dim]] = {}
    for text, places in wanted.items():
        least = min(2, *(tensor.shape[dim] for tensor, dim in places))
        for tensor, dim in places:
            marks.setdefault(id(tensor), {})[dim] = Dim(text, min=max(least, 1))
    return [_marked(value, marks) for value in [*args, *kwargs.values()]] if marks else None


def _marked(value: Any, marks: Mapping[int, dict[int, Dim]]) -> Any:
    if isinstance(value, Tensor):
        return marks.get(id(value))
    if isinstance(value, Mapping):
        return {key: _marked(part, marks) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [_marked(part, marks) for part in value]
    return None


@contextlib.contextmanager
def _in_export() -> Iterator[None]:
    global _exporting
    _exporting = True
    try:
        yield
    finally:
        _exporting = False


def _lower(
    program: ExportedProgram,
    opset: int,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
) -> Model:
    graph = read(program.program)
    texts, order = _separate_results(program)
    graph.outputs = [graph.outputs[i] for i in order]
    builder = Builder(graph, opset)
    inputs = _named([name for name, _ in graph.inputs], input_names, "input_names")
    outputs = _named([f"output_{i}" for i in range(len(graph.outputs))], output_names, "output_names")
    graph.inputs = [(name, value) for name, (_, value) in zip(inputs, graph.inputs, strict=True)]
    if len({*inputs, *outputs}) < len(inputs) + len(outputs):
        raise ValueError(
            f"onnx.export(input_names, output_names): a name is repeated in {[*inputs, *outputs]}"
        )
    for name in outputs:
        builder.reserve(name)
    lowering = Lowering(graph, [tensor for _, _, tensor in program.program.constants()], builder)
    results = lowering.run()
    if lowering.problems:
        listed = "".join(f"\n  {text}" for text in dict.fromkeys(lowering.problems))
        raise OnnxExporterError(f"onnx.export: the model calls operators that ONNX cannot express:{listed}")
    _name_outputs(builder, results, outputs)
    metadata = {METADATA + key: text for key, text in texts.items()}
    if graph.symbols:
        ranges = [{"name": s.name, "min": s.min, "max": s.max, "example": s.example} for s in graph.symbols]
        metadata[METADATA + "symbols"] = json.dumps(ranges)
    model = Model(
        opset,
        builder.nodes,
        builder.initializers,
        [builder.type_of(name, value) for name, value in graph.inputs],
        [builder.type_of(name, value) for name, value in zip(outputs, graph.outputs, strict=True)],
        metadata,
    )
    model.prune()
    return model


def _separate_results(program: ExportedProgram) -> tuple[dict[str, str], list[int]]:
    """Return the metadata of the ONNX model, and for each of its results the index of an output of `program`.

    A tensor that the captured function returns several times is one output of `program`, but several results
    of the model."""
    texts = dict(program.program.metadata())
    count = len(json.loads(program.program.graph())["outputs"])
    if "results" not in texts:
        return texts, list(range(count))
    structure, order = trees.separated(json.loads(texts["results"]))
    if set(order) != set(range(count)):
        return texts, list(range(count))
    texts["results"] = json.dumps(structure)
    return texts, order


def _named(defaults: list[str], given: Sequence[str] | None, argument: str) -> list[str]:
    names = list(given or ())
    if len(names) > len(defaults):
        raise ValueError(f"onnx.export({argument}): {len(names)} names are given for {len(defaults)} tensors")
    return names + defaults[len(names) :]


def _name_outputs(builder: Builder, results: list[Val], names: list[str]) -> None:
    """Name the results. If a result is an input, a constant or an earlier result, an additional node copies it."""
    made = {output for node in builder.nodes for output in node.outputs}
    renamed: dict[str, str] = {}
    builder.where = ""
    copies = []
    for val, name in zip(results, names, strict=True):
        if val.name in made and val.name not in renamed:
            renamed[val.name] = name
        else:
            copies.append((val, name))
    for node in nested(builder.nodes):
        node.inputs = [renamed.get(given, given) for given in node.inputs]
        node.outputs = [renamed.get(given, given) for given in node.outputs]
    for val, name in copies:
        made_val = builder.op("Identity", Val(renamed.get(val.name, val.name), val.dtype))
        builder.nodes[-1].outputs = [name]
        del made_val


def _verify(exported: ONNXProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with core.no_grad():
        program = exported.exported_program
        results = program.program.run(_tensors([args, kwargs]))
        expected = [results[i] for i in _separate_results(program)[1]]
    for i, (tensor, got) in enumerate(zip(expected, exported(*args, **kwargs), strict=True)):
        if not core.allclose(got.to(core.float64), tensor.to(core.float64), 1e-4, 1e-5, equal_nan=True):
            raise OnnxExporterError(
                f"onnx.export(verify): result {i} of onnxruntime differs from the result of the program"
            )
