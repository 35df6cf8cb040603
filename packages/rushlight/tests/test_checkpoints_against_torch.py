"""Checkpoints that one library writes and the other reads, and back, if PyTorch is installed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

LEGACY = [False, True]


def block(nn: Any, inputs: int, outputs: int, stride: int) -> Any:
    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outputs)
            self.downsample = None
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
                )

        def forward(self, x: Any) -> Any:
            kept = x if self.downsample is None else self.downsample(x)
            return (self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())) + kept).relu()

    return Block()


def resnet(nn: Any) -> Any:
    layers = [nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    layers += [
        block(nn, 8, 8, 1),
        block(nn, 8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    ]
    return nn.Sequential(*layers)


def gpt(nn: Any) -> Any:
    class GPT(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(11, 8)
            self.position = nn.Parameter(nn.init.zeros_(nn.Embedding(6, 8).weight.detach()))
            self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True, norm_first=True)
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return self.head(
                self.block(self.embedding(x) + self.position[: x.shape[1]], src_mask=mask, is_causal=True)
            )

    return GPT()


def inputs(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    return (
        rng.normal(size=(4, 3, 32, 32)).astype(np.float32)
        if kind == "resnet"
        else rng.integers(0, 11, (4, 6))
    )


MODELS = {"resnet": resnet, "gpt": gpt}


def train(library: Any, model: Any, optimizer: Any, scheduler: Any, kind: str, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(library.from_numpy(inputs(kind).copy())).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def build(library: Any, kind: str) -> tuple[Any, Any, Any]:
    model = MODELS[kind](library.nn)
    optimizer = library.optim.AdamW(model.parameters(), lr=1e-2)
    return model, optimizer, library.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)


@pytest.mark.parametrize("legacy", LEGACY)
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("kind", MODELS)
def test_a_run_begun_in_one_library_goes_on_in_the_other(
    kind: str, ours_first: bool, legacy: bool, tmp_path: Path
) -> None:
    first, second = (rushlight, torch) if ours_first else (torch, rushlight)
    parts = build(first, kind)
    train(first, *parts, kind, 2)
    names = ("model", "optimizer", "scheduler")
    state = {name: part.state_dict() for name, part in zip(names, parts, strict=True)}
    first.save(state, tmp_path / "run.pt", _use_new_zipfile_serialization=not legacy)

    others = build(second, kind)
    found = second.load(tmp_path / "run.pt", weights_only=True)
    for name, part in zip(names, others, strict=True):
        part.load_state_dict(found[name])
    expected = train(first, *parts, kind, 3)
    np.testing.assert_allclose(train(second, *others, kind, 3), expected, rtol=1e-3)


@pytest.mark.parametrize("legacy", LEGACY)
@pytest.mark.parametrize("ours_first", [True, False])
def test_tied_weights_and_views_stay_tied(ours_first: bool, legacy: bool) -> None:
    first, second = (rushlight, torch) if ours_first else (torch, rushlight)
    base = first.arange(12.0).reshape(3, 4)
    file = io.BytesIO()
    value = {
        "gpt": gpt(first.nn).state_dict(),
        "base": base,
        "row": base[1],
        "column": base[:, 2],
        "t": base.t(),
    }
    options = {"format": "pytorch"} if ours_first else {}
    first.save(value, file, _use_new_zipfile_serialization=not legacy, **options)
    file.seek(0)
    found = second.load(file, weights_only=True)
    assert found["gpt"]["embedding.weight"].data_ptr() == found["gpt"]["head.weight"].data_ptr()
    found["base"].fill_(5.0)
    assert found["row"].tolist() == [5.0] * 4
    assert found["column"].tolist() == [5.0] * 3
    assert found["t"].stride() == (1, 4)
    assert found["t"].tolist() == [[5.0] * 3] * 4


@pytest.mark.parametrize("legacy", LEGACY)
@pytest.mark.parametrize("ours_first", [True, False])
def test_dtypes(ours_first: bool, legacy: bool) -> None:
    first, second = (rushlight, torch) if ours_first else (torch, rushlight)
    names = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
    names += ["complex64", "complex128", *([] if legacy else ["uint16", "uint32", "uint64"])]
    for name in names:
        tensor = first.tensor([[0, 1], [1, 1]]).to(getattr(first, name))
        file = io.BytesIO()
        options = {"format": "pytorch"} if ours_first else {}
        first.save([tensor, tensor.t()], file, _use_new_zipfile_serialization=not legacy, **options)
        file.seek(0)
        found = second.load(file, weights_only=True)
        assert found[0].dtype == getattr(second, name), name
        assert found[0].tolist() == tensor.tolist(), name
        assert found[1].stride() == (1, 2), name


def test_conjugated_views() -> None:
    file = io.BytesIO()
    value = torch.tensor([1 + 2j])
    torch.save([value, value.conj()], file)
    file.seek(0)
    assert [t.tolist() for t in rushlight.load(file)] == [[1 + 2j], [1 - 2j]]


def test_maps_of_our_files(tmp_path: Path) -> None:
    rushlight.save({"a": rushlight.arange(1000.0), "b": rushlight.ones(3).bool()}, tmp_path / "x.pt")
    found = torch.load(tmp_path / "x.pt", mmap=True, weights_only=True)
    assert found["a"].sum().item() == 499500.0
    torch.save({"a": torch.arange(1000.0), "b": torch.ones(3).bool()}, tmp_path / "y.pt")
    ours = rushlight.load(tmp_path / "y.pt", mmap=True, verify=True)
    assert ours["a"].sum().item() == 499500.0


def test_safetensors_files(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    model = gpt(rushlight.nn)
    rushlight.save(model.state_dict(), tmp_path / "x.safetensors")
    found = safetensors.load_file(tmp_path / "x.safetensors")
    assert sorted(found) == sorted(model.state_dict())
    theirs = gpt(torch.nn)
    assert not theirs.load_state_dict(found).missing_keys
    safetensors.save_model(theirs, str(tmp_path / "y.safetensors"))
    assert "embedding.weight" in rushlight.load(tmp_path / "y.safetensors")
