"""Rows of tensors in safetensors files."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import rushlight_core as core
from rushlight_data import DataLoader, SafetensorsDataset
from rushlight_data.safetensors_dataset import _DTYPES

safetensors = pytest.importorskip("safetensors")


def write(path, tensors, **entries):
    """Write a safetensors file. Each tensor is a tuple (name of the dtype, array)."""
    header, data = {"__metadata__": {"made by": "a test"}}, b""
    for name, (kind, array) in tensors.items():
        content = array.tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(content)],
        }
        data += content
    header.update(entries)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture
def path(tmp_path):
    x, y = np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8)
    return write(
        tmp_path / "data.safetensors", {"x": ("F32", x), "y": ("I64", y), "other": ("F64", np.zeros(3))}
    )


def test_rows(path, transport):
    dataset = SafetensorsDataset(path, ["y", "x"])
    assert len(dataset) == 8
    assert list(dataset[2]) == ["y", "x"]
    assert dataset[2]["x"].tolist() == [6, 7, 8]
    assert dataset[-1]["y"].item() == 7
    dataset[2]["x"].zero_()  # the sample is a copy
    assert dataset[2]["x"].tolist() == [6, 7, 8]
    for options in ({}, {"num_workers": 1, "transport": transport}):
        (batch,) = DataLoader(dataset, 3, sampler=[7, 0, -2], **options)
        assert batch["y"].tolist() == [7, 0, 6]
        assert batch["x"][:, 0].tolist() == [21, 0, 18]
    for index in (8, -9):
        with pytest.raises(IndexError, match=rf"index {index} is out of range for 8 rows"):
            dataset[index]


@pytest.mark.parametrize("kind", _DTYPES)
def test_dtypes(tmp_path, kind):
    stored, dtype = _DTYPES[kind]
    content = np.array([[0, 1], [1, 0], [1, 1]]).astype(stored)
    dataset = SafetensorsDataset(write(tmp_path / "a", {"x": (kind, content)}))
    for rows in (dataset[1]["x"], dataset.__getbatch__([1, 0])["x"][0]):
        assert rows.dtype == dtype
        assert bytes(memoryview(rows.contiguous().view(core.uint8))) == content[1].tobytes()


def test_scalars_and_empty_rows(tmp_path):
    dataset = SafetensorsDataset(write(tmp_path / "a", {"x": ("BF16", np.array([0x3F80, 0x4000], "<i2"))}))
    assert dataset[1]["x"].item() == 2
    assert dataset[1]["x"].shape == ()
    empty = SafetensorsDataset(write(tmp_path / "b", {"x": ("F32", np.zeros((2, 0), np.float32))}))
    assert empty[1]["x"].shape == (0,)


def test_pickled_by_path(tmp_path):
    path = write(tmp_path / "a", {"x": ("F64", np.zeros(100_000))})
    pickled = pickle.dumps(SafetensorsDataset(path))
    assert len(pickled) < 1000
    assert pickle.loads(pickled)[99_999]["x"].item() == 0


def test_errors(path, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"same first dimension, got shapes .*'other': \(3,\)"):
        SafetensorsDataset(path)
    with pytest.raises(ValueError, match=r"data.safetensors' has no tensor 'z'; it has other, x, y"):
        SafetensorsDataset(path, ["z"])
    with pytest.raises(ValueError, match="no tensors"):
        SafetensorsDataset(path, [])
    with pytest.raises(ValueError, match="same first dimension"):
        SafetensorsDataset(write(tmp_path / "a", {"x": ("F64", np.array(1.0))}))
    monkeypatch.delitem(_DTYPES, "F8_E4M3")  # as a dtype that core lacks
    with pytest.raises(TypeError, match=r"tensor 'x' of .* unsupported dtype F8_E4M3"):
        SafetensorsDataset(write(tmp_path / "b", {"x": ("F8_E4M3", np.zeros(4, np.uint8))}))
    with pytest.raises(FileNotFoundError):
        SafetensorsDataset(tmp_path / "nothing")
    overlapping = {"dtype": "U8", "shape": [4], "data_offsets": [2, 6]}
    with pytest.raises(safetensors.SafetensorError) as caught:
        SafetensorsDataset(write(tmp_path / "c", {"x": ("U8", np.zeros(4, np.uint8))}, y=overlapping))
    assert any(str(tmp_path / "c") in note for note in caught.value.__notes__)
