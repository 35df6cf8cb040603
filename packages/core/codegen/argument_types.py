"""Argument types, and their spelling in signatures, in C++ and in Python stubs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    """An argument type: one row of the table below."""

    name: str  # in signatures
    cpp: str  # as a parameter in C++
    tag: str  # rushlight::python::ArgType in the Python parser
    getter: str  # the parser's accessor
    stub: str  # type in .pyi files
    is_tensor: bool = False  # takes part in dispatch

    @property
    def optional(self) -> bool:
        return self.name.endswith("?")


_ROWS = [
    Type("Tensor", "const Tensor&", "Tensor", "tensor", "Tensor", True),
    Type("Tensor?", "const Tensor&", "OptTensor", "tensor", "Tensor | None", True),
    Type("Tensor[]", "TensorList", "TensorList", "tensors", "Sequence[Tensor]", True),
    Type("Tensor?[]", "TensorList", "OptTensorList", "tensors", "Sequence[Tensor | None]", True),
    Type(
        "TensorOrScalar",
        "const TensorOrScalar&",
        "TensorOrScalar",
        "tensor_or_scalar",
        "Tensor | Number",
        True,
    ),
    Type(
        "TensorOrScalar?",
        "const std::optional<TensorOrScalar>&",
        "OptTensorOrScalar",
        "opt_tensor_or_scalar",
        "Tensor | Number | None",
        True,
    ),
    Type("Scalar", "Scalar", "Scalar", "scalar", "Number"),
    Type("Scalar?", "std::optional<Scalar>", "OptScalar", "opt_scalar", "Number | None"),
    Type("int", "int64_t", "Int", "integer", "int"),
    Type("int?", "std::optional<int64_t>", "OptInt", "opt_integer", "int | None"),
    Type("int[]", "IntList", "IntList", "ints", "int | Sequence[int]"),
    Type("int[]?", "std::optional<IntList>", "OptIntList", "opt_ints", "int | Sequence[int] | None"),
    Type("bool", "bool", "Bool", "boolean", "bool"),
    Type("bool?", "std::optional<bool>", "OptBool", "opt_boolean", "bool | None"),
    Type("float", "double", "Float", "floating", "float"),
    Type("float?", "std::optional<double>", "OptFloat", "opt_floating", "float | None"),
    Type("str", "std::string_view", "Str", "string", "str"),
    Type("str?", "std::optional<std::string_view>", "OptStr", "opt_string", "str | None"),
    Type("dtype", "DType", "DType", "dtype", "dtype"),
    Type("dtype?", "std::optional<DType>", "OptDType", "opt_dtype", "dtype | None"),
    Type("device?", "std::optional<Device>", "OptDevice", "opt_device", "DeviceLike | None"),
    Type("Generator?", "Generator*", "OptGenerator", "generator", "Generator | None"),
]
TYPES = {t.name: t for t in _ROWS}
