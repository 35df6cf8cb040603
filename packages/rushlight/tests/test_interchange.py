"""Tensors on the CPU that are passed to other libraries, if these are installed."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def values(dtype: str) -> torch.Tensor:
    return torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype))


# --- PyTorch ---


@pytest.mark.parametrize("dtype", [*DTYPES, "uint16", "uint32", "uint64"])
def test_pytorch_and_back(dtype: str) -> None:
    peer = pytest.importorskip("torch")
    ours = values(dtype)
    theirs = peer.from_dlpack(ours.t())
    assert str(theirs.dtype) == str(ours.dtype)
    assert theirs.stride() == (1, 3)
    assert theirs.data_ptr() == ours.data_ptr()
    again = torch.from_dlpack(theirs)
    assert again.data_ptr() == ours.data_ptr()
    assert again.tolist() == ours.t().tolist()
    back = torch.utils.dlpack.from_dlpack(peer.utils.dlpack.to_dlpack(theirs))
    assert back.dtype == ours.dtype
    capsule = torch.utils.dlpack.to_dlpack(ours)
    assert peer.utils.dlpack.from_dlpack(capsule).tolist() == ours.tolist()


def test_pytorchs_writes_are_seen() -> None:
    peer = pytest.importorskip("torch")
    ours = values("float32")
    peer.from_dlpack(ours).mul_(2)
    assert ours.tolist() == [[0, 2, 4], [6, 8, 10]]
    theirs = peer.zeros(2)
    torch.from_dlpack(theirs).add_(1)
    assert theirs.tolist() == [1, 1]
    assert torch.as_tensor(theirs).tolist() == torch.tensor(theirs).tolist() == [1, 1]
    assert peer.as_tensor(np.asarray(ours)).tolist() == ours.tolist()


def test_pytorchs_gradients_stay_there() -> None:
    peer = pytest.importorskip("torch")
    with pytest.raises(BufferError):
        peer.from_dlpack(torch.ones(2, requires_grad=True))
    assert not torch.from_dlpack(peer.ones(2, requires_grad=True).detach()).requires_grad


# --- NumPy ---


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bfloat16"])
def test_numpy_and_back(dtype: str) -> None:
    ours = values(dtype)
    array = np.asarray(ours)
    assert array.dtype == np.dtype(dtype)
    assert np.shares_memory(array, ours.numpy())
    assert torch.from_numpy(array).data_ptr() == ours.data_ptr()
    assert np.from_dlpack(ours).tolist() == ours.tolist()
    assert torch.from_dlpack(array).tolist() == ours.tolist()


def test_functions_of_numpy_take_tensors() -> None:
    x = values("float64")
    assert np.mean(x) == 2.5
    assert np.sqrt(x).shape == (2, 3)
    assert np.concatenate([x, x]).shape == (4, 3)
    assert np.array(x, dtype=np.float32).dtype == np.float32
    assert np.allclose(x, x.numpy())


def test_tensors_come_before_arrays() -> None:
    x, array = values("float64"), np.ones((2, 3))
    assert x.__array_priority__ > array.__array_priority__
    for mixed in (x + array, array + x, x * array, array - x, array / (x + 1), array > x, array @ x.t()):
        assert isinstance(mixed, torch.Tensor)
    assert (array - x).tolist() == (1 - x).tolist()


# --- pandas, matplotlib, scikit-learn ---


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    x = values("float32")
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    assert frame["b"].tolist() == [1, 4]
    assert frame.dtypes.iloc[0] == np.float32
    series = pandas.Series(values("int64")[1])
    assert series.sum() == 12
    assert pandas.DataFrame({"a": x[:, 0], "b": x[:, 1]}).shape == (2, 2)
    frame["d"] = x[:, 2]
    assert torch.tensor(frame.to_numpy()).tolist() == [[0, 1, 2, 2], [3, 4, 5, 5]]
    assert torch.tensor(frame["d"]).tolist() == [2, 5]
    assert torch.as_tensor(series.to_numpy()).tolist() == [3, 4, 5]
    assert torch.tensor(frame["a"].values).dtype == torch.float32


def test_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x = torch.linspace(0, 1, 8)
    figure, axes = pyplot.subplots()
    try:
        (line,) = axes.plot(x, x**2)
        assert np.allclose(line.get_ydata(), (x**2).numpy())
        axes.scatter(x, x.sqrt(), c=x, s=10 * x)
        axes.bar(torch.arange(8), x)
        counts, _, _ = axes.hist(x, bins=torch.tensor([0.0, 0.5, 1.0]).numpy())
        assert counts.sum() == 8
        axes.fill_between(x, x - 1, x + 1)
        axes.errorbar(x, x, yerr=x / 10)
        axes.axhline(x.mean())
        axes.set_xlim(x.min(), x.max())
        image = axes.imshow(torch.rand(4, 5))
        assert image.get_array().shape == (4, 5)
        axes.imshow(torch.zeros(4, 5, 3, dtype=torch.uint8))
        axes.contour(torch.rand(4, 5))
        rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(5.0), indexing="ij")
        filled = axes.contourf(columns, rows, rows * columns, levels=torch.tensor([0.0, 2.0, 6.0, 12.0]))
        assert filled.levels.tolist() == [0, 2, 6, 12]
        axes.pcolormesh(columns, rows, rows * columns)
        axes.quiver(columns, rows, rows, columns)
        figure.canvas.draw()
    finally:
        pyplot.close(figure)


def test_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import accuracy_score, mean_squared_error
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    torch.manual_seed(0)
    x = torch.randn(60, 3, dtype=torch.float64)
    y = x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + 3
    model = LinearRegression().fit(x, y)
    assert np.allclose(model.coef_, [1, -2, 0.5])
    assert mean_squared_error(y, torch.from_numpy(model.predict(x))) < 1e-20
    labels = (y > 3).to(torch.int64)
    found = LogisticRegression().fit(x, labels).predict(x)
    assert accuracy_score(labels, found) > 0.9
    scaled = StandardScaler().fit_transform(x)
    assert math.isclose(scaled.std(), 1, rel_tol=1e-9)
    first, second = train_test_split(x, test_size=0.5, random_state=0)
    assert isinstance(first, torch.Tensor)
    assert len(first) == len(second) == 30


DISPATCH = """
import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
import rushlight as torch

values = np.random.default_rng(0).normal(size=(40, 5))
x = torch.tensor(values)
y = x @ torch.arange(5.0, dtype=torch.float64)
with sklearn.config_context(array_api_dispatch=True):
    scaled = StandardScaler().fit_transform(x)
    parts = PCA(2, svd_solver="full").fit_transform(x)
    predicted = Ridge(alpha=1e-9, solver="svd").fit(x, y).predict(x)
for result in (scaled, parts, predicted):
    assert isinstance(result, torch.Tensor), type(result)
assert np.allclose(np.asarray(parts), PCA(2, svd_solver="full").fit_transform(values))
assert torch.allclose(predicted, y)
"""


def test_scikit_learn_computes_with_tensors_where_it_may() -> None:
    """scikit-learn accepts and returns tensors by the array API standard. SciPy reads its variable when it is imported."""
    pytest.importorskip("sklearn")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", DISPATCH], check=True, env=environment)


def test_the_namespace_of_the_array_api_standard() -> None:
    import rushlight.array_api as xp

    x = torch.tensor([[3, 1], [2, 2]], dtype=torch.uint8)
    found = x.__array_namespace__()
    assert set(xp.__all__) == set(found.__all__)
    assert xp.sum(x).dtype == found.sum(x).dtype == torch.uint64
    assert torch.array_api.max(x, axis=0).tolist() == [3, 2]
    assert torch.sum(x).dtype == torch.int64
