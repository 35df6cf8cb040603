"""A library of a few operators over NumPy, for tests of the fuzzer."""

from __future__ import annotations

from typing import Any

import numpy as np

float64 = np.dtype("float64")
float32 = np.dtype("float32")
float16 = np.dtype("float16")
bfloat16 = np.dtype("float32")
int64 = np.dtype("int64")
int32 = np.dtype("int32")
int16 = np.dtype("int16")
int8 = np.dtype("int8")
uint8 = np.dtype("uint8")
bool = np.dtype("bool")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")


class Storage:
    def __init__(self, array: Any) -> None:
        while array.base is not None:
            array = array.base
        self.array = array

    def data_ptr(self) -> int:
        return id(self.array)


class Memory(np.ndarray):
    """The object that `data` of a tensor returns, which can be written to."""

    def copy_(self, other: Tensor) -> None:
        self[...] = other.data


class Tensor:
    requires_grad = False

    def __init__(self, data: Any) -> None:
        self.data = np.asarray(data).view(Memory)

    dtype = property(lambda self: self.data.dtype)
    shape = property(lambda self: self.data.shape)

    def numel(self) -> int:
        return self.data.size

    def untyped_storage(self) -> Storage:
        return Storage(self.data)

    def detach(self) -> Tensor:
        return self

    def numpy(self, force: Any = False) -> Any:
        return self.data

    def requires_grad_(self) -> Tensor:
        return self

    def reshape(self, shape: tuple[int, ...]) -> Tensor:
        return Tensor(self.data.reshape(shape))

    def clone(self) -> Tensor:
        return Tensor(self.data.copy())

    def t(self) -> Tensor:
        return Tensor(self.data.T)

    def neg_(self) -> Tensor:
        self.data[...] = -self.data
        return self

    def add_(self, other: Any) -> Tensor:
        self.data[...] += plain(other)
        return self

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.data[plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.data[plain(index)] = plain(value)

    def __add__(self, other: Any) -> Tensor:
        return Tensor(self.data + plain(other))

    __radd__ = __add__


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    return value.data if isinstance(value, Tensor) else value


def tensor(values: Any, dtype: Any = None) -> Tensor:
    return Tensor(np.array(values, dtype))


def add(x: Tensor, y: Tensor) -> Tensor:
    return Tensor(x.data + y.data)


def neg(x: Tensor) -> Tensor:
    return Tensor(-x.data)


def total(x: Tensor, dim: int = 0) -> Tensor:
    return Tensor(x.data.sum(dim))


def t(x: Tensor) -> Tensor:
    return x.t()


def get_default_dtype() -> Any:
    return float32


def set_default_dtype(dtype: Any) -> None:
    """Do nothing: no operator of this library returns a default dtype."""
