"""Models of rushlight.nn in onnxruntime: the models of Table 1 of the benchmarks, a GPT, a ViT and recurrent layers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn

checker = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).resolve().parents[3]
TABLE1 = ROOT / "benchmarks" / "table1" / "models.py"

# Runs in a separate process, in which `import torch` imports rushlight, because the models import torch.
PROGRAM = """
import sys
import numpy as np
import onnx, onnxruntime
import rushlight.as_torch

rushlight.as_torch.install()
import torch

sys.path.insert(0, sys.argv[2])
from benchmarks.table1 import models

torch.backends.cpu.winograd = False
torch.manual_seed(0)


def image(size=224):
    return (torch.randn(1, 3, size, size),)


def ids(*shape):
    return torch.randint(100, shape)


def gpt():
    model = models.GPT(512, 32, 96, heads=6, layers=6, dropout=0.1)
    model.tokens.weight.data.mul_(0.02)  # as GPTs are initialised
    return model


build, args = {
    "alexnet": lambda: (models.AlexNet(), image()),
    "vgg19": lambda: (models.VGG19(), image()),
    "resnet50": lambda: (models.ResNet50(), image()),
    "mobilenetv2": lambda: (models.MobileNetV2(), image()),
    "gnmt": lambda: (models.GNMT(500, 128), (ids(2, 7), ids(2, 5))),
    "ncf": lambda: (models.NeuMF(1000, 500), (ids(8), ids(8))),
    "gpt": lambda: (gpt(), (ids(2, 32),)),
    "vit-s": lambda: (models.ViT(64, 16, 384, heads=6, layers=12), image(64)),
}[sys.argv[1]]()
build.eval()
path = sys.argv[3]
torch.onnx.export(build, args, path)
onnx.checker.check_model(path, full_check=True)
with torch.no_grad():
    expected = build(*args).numpy()
session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
given = {item.name: t.numpy() for item, t in zip(session.get_inputs(), args)}
np.testing.assert_allclose(session.run(None, given)[0], expected, 1e-4, 1e-5)
"""


@pytest.mark.skipif(not TABLE1.exists(), reason="the benchmarks are not beside the packages")
@pytest.mark.parametrize(
    "name", ["alexnet", "vgg19", "resnet50", "mobilenetv2", "gnmt", "ncf", "gpt", "vit-s"]
)
def test_models_of_the_benchmarks(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", PROGRAM, name, str(ROOT), str(tmp_path / "model.onnx")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    for file in tmp_path.iterdir():  # the files have hundreds of megabytes
        file.unlink()
    assert result.returncode == 0, result.stderr


def check(model: Any, args: tuple[Any, ...], **options: Any) -> None:
    """Check that onnxruntime and `load` compute the same results as the model."""
    import io

    file = io.BytesIO()
    torch.onnx.export(model, args, file, **options)
    checker.checker.check_model(checker.load_model_from_string(file.getvalue()), full_check=True)
    session = runtime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    given = {item.name: t.numpy() for item, t in zip(session.get_inputs(), flat(args), strict=True)}
    with torch.no_grad():
        expected = flat(model(*args))
    for got, want in zip(session.run(None, given), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), 1e-4, 1e-5)
    loaded = torch.onnx.load(io.BytesIO(file.getvalue())).module()
    for one, want in zip(flat(loaded(*args)), expected, strict=True):
        np.testing.assert_allclose(one.numpy(), want.numpy(), 1e-4, 1e-5)


def flat(value: Any) -> list[Any]:
    return [part for item in value for part in flat(item)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_layers(kind: Any, bidirectional: bool, batch_first: bool) -> None:
    layers = kind(5, 6, 2, bidirectional=bidirectional, batch_first=batch_first, dropout=0.5).eval()
    check(layers, (torch.randn(3, 4, 5),))
    state = torch.randn(2 * (1 + bidirectional), 4 if not batch_first else 3, 6)
    check(layers, (torch.randn(3, 4, 5), (state, state * 2) if kind is nn.LSTM else state))


def test_cells() -> None:
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        check(kind(5, 6), (torch.randn(3, 5),))


@pytest.mark.parametrize("opset", [17, 18, 21])
def test_a_transformer(opset: int) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True).eval()
    check(layer, (torch.randn(2, 7, 16),), opset_version=opset)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_upsampling(mode: str) -> None:
    check(nn.Upsample(scale_factor=1.5, mode=mode), (torch.randn(1, 2, 6, 8),))


def test_a_convolutional_autoencoder() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.Hardswish(), nn.GroupNorm(2, 8),
        nn.MaxPool2d(3, 2, ceil_mode=True), nn.ConvTranspose2d(8, 8, 3, stride=2, output_padding=1), nn.InstanceNorm2d(8),
        nn.PReLU(8), nn.PixelShuffle(2), nn.ReflectionPad2d(1), nn.AvgPool2d(3, 2, 1), nn.AdaptiveAvgPool2d(5),
        nn.Flatten(), nn.Linear(50, 4), nn.Softmax(1),
    ).eval()  # fmt: skip
    check(model, (torch.randn(2, 3, 17, 16),))
