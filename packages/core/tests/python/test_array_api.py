"""Names of the array API standard that are not operators, compared with NumPy, which implements the standard, too."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight_core as core

DATA = np.array([[3, 1, 2], [1, 3, 1]])


def test_a_tensor_names_its_namespace() -> None:
    xp = core.ones(2).__array_namespace__()
    assert xp.asarray([1.0]).dtype == core.float32
    assert core.ones(2).__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="api_version"):
        core.ones(2).__array_namespace__(api_version="1999.01")
    assert core.ones(2).to_device("cpu").device.type == "cpu"
    for name in ("e", "pi", "inf", "nan", "newaxis"):
        wanted = getattr(np, name)
        assert getattr(xp, name) == wanted or wanted != wanted
    assert xp.finfo(xp.float32).eps == np.finfo(np.float32).eps


def test_the_namespace_answers_about_itself() -> None:
    info = core.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == core.get_default_dtype()
    assert info.dtypes(kind="unsigned integer").keys() == {"uint8", "uint16", "uint32", "uint64"}
    assert info.dtypes(kind=("bool", "complex floating")).keys() == {"bool", "complex64", "complex128"}
    assert info.capabilities()["max dimensions"] == 64
    with pytest.raises(ValueError, match="kind"):
        core.isdtype(core.bool, "whole")


def test_uniques() -> None:
    x = core.tensor(DATA)
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        for got, wanted in zip(getattr(core, name)(x), getattr(np, name)(DATA), strict=True):
            assert got.tolist() == wanted.tolist(), name
    assert core.unique_values(x).tolist() == [1, 2, 3]
    assert core.unique_all(x)._fields == np.unique_all(DATA)._fields


def test_running_sums() -> None:
    x = core.tensor(DATA)
    for axis in (0, 1, -1):
        assert core.cumulative_sum(x, axis=axis).tolist() == DATA.cumsum(axis).tolist()
        assert core.cumulative_prod(x, axis=axis).tolist() == DATA.cumprod(axis).tolist()
        begun = core.cumulative_sum(x, axis=axis, include_initial=True)
        assert begun.tolist() == np.concatenate([0 * DATA.take([0], axis), DATA.cumsum(axis)], axis).tolist()
    assert core.cumulative_prod(x[0], include_initial=True).tolist() == [1, 3, 3, 6]
    with pytest.raises(ValueError, match="axis"):
        core.cumulative_sum(x)


def test_shapes_and_indices() -> None:
    x = core.tensor(DATA)
    assert core.expand_dims(x, axis=1).shape == (2, 1, 3)
    assert core.permute_dims(x, (1, 0)).tolist() == core.matrix_transpose(x).tolist() == DATA.T.tolist()
    assert [row.tolist() for row in core.unstack(x, axis=1)] == DATA.T.tolist()
    assert core.repeat(x, 2, axis=0).tolist() == DATA.repeat(2, 0).tolist()
    assert [a.shape for a in core.broadcast_arrays(x, core.ones(2, 1))] == [(2, 3), (2, 3)]
    indices = DATA.argsort(axis=1)
    wanted = np.take_along_axis(DATA, indices, 1).tolist()
    assert core.take_along_axis(x, core.tensor(indices), axis=1).tolist() == wanted
    assert core.bitwise_invert(x).tolist() == (~DATA).tolist()
    assert core.astype(x, core.float64).dtype == core.float64
    assert core.astype(x, x.dtype, copy=False) is x
    assert core.astype(x, x.dtype).data_ptr() != x.data_ptr()


def test_products() -> None:
    z = core.tensor([[1j, 2.0], [3.0, 4j]])
    assert core.vecdot(z, z).tolist() == [5, 25]
    assert core.linalg.trace(core.tensor(np.arange(18).reshape(2, 3, 3)), offset=1).tolist() == [6, 24]
    assert core.linalg.outer(core.ones(2), core.ones(3)).shape == (2, 3)
    assert core.linalg.tensordot(core.ones(2, 3), core.ones(3, 2), 1).tolist() == [[3.0, 3.0], [3.0, 3.0]]
