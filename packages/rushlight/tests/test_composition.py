"""The composition: every part is available under its names, and all names refer to the same objects."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

import rushlight as torch
import rushlight_autograd
import rushlight_core
import rushlight_data
import rushlight_graph
import rushlight_nn


def test_names_lead_to_the_packages_own_objects():
    assert torch.Tensor is rushlight_core.Tensor
    assert torch.nn.Linear is rushlight_nn.Linear
    assert torch.optim.Adam is rushlight_nn.optim.Adam
    assert torch.autograd.Function is rushlight_autograd.Function
    assert torch.utils.data.DataLoader is rushlight_data.DataLoader
    assert torch.export.export is rushlight_graph.export
    assert torch.save is rushlight_nn.serialization.save


MODULES = [
    "__future__", "accelerator", "amp", "ao.quantization", "as_torch", "autograd", "autograd.forward_ad",
    "autograd.function", "autograd.functional", "autograd.graph", "backends", "backends.cudnn",
    "backends.mps", "compiler", "cpu", "cuda", "cuda.amp", "distributed", "export", "func", "futures", "fx", "hub",
    "jit", "library", "linalg", "mps", "multiprocessing", "nn", "nn.attention", "nn.attention.flex_attention",
    "nn.functional", "nn.init", "nn.modules", "nn.modules.batchnorm", "nn.modules.conv", "nn.modules.loss",
    "nn.modules.pooling", "nn.parallel", "nn.utils", "onnx", "optim", "optim.lr_scheduler", "optim.optimizer",
    "overrides", "profiler", "random", "serialization", "storage", "testing", "types", "utils", "utils.data",
    "utils.data.dataset", "utils.data.sampler", "utils.dlpack", "version", "xpu",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_modules_can_be_imported_and_reached(name):
    module = importlib.import_module(f"rushlight.{name}")
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    assert all(getattr(module, member) is getattr(found, member) for member in module.__all__)
    assert all(hasattr(module, member) for member in module.__all__)


def test_what_is_missing_is_named():
    with pytest.raises(
        AttributeError, match=r"'rushlight' has no attribute 'quantize_per_tensor'.*\n.*docs/differences.md"
    ):
        torch.quantize_per_tensor


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("torch.reulu", "relu"),
        ("torch.optm", "optim"),
        ("torch.nn.Liner", "Linear"),
        ("torch.nn.functional.reulu", "relu"),
        ("torch.optim.Admw", "AdamW"),
        ("torch.utils.data.DataLoder", "DataLoader"),
        ("torch.ones(2).reulu", "relu"),
        ("torch.Linear", "nn.Linear"),
        ("torch.DataLoader", "utils.data.DataLoader"),
        ("torch.data", "utils.data"),
        ("torch.vjp", "func.vjp"),
        ("torch.nn.Linear(1, 1).wieght", "weight"),
    ],
)
def test_what_is_misspelt_is_answered_with_a_name(text, meant, capsys):
    """The suggestion is in the traceback that Python prints. Python itself adds suggestions only for small modules."""
    with pytest.raises(AttributeError) as caught:
        eval(text)
    sys.__excepthook__(caught.type, caught.value, None)
    assert f"Did you mean: {meant!r}?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["Data", "sys", "math"])
def test_no_name_is_suggested_that_is_not_similar(name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'\n"):
        getattr(torch, name)


def test_dir_lists_what_is_loaded_later():
    assert {"nn", "optim", "save", "cuda", "zeros"} <= set(dir(torch))
    for name in [*MODULES, "autograd.gradcheck", "utils.deterministic"]:
        module = importlib.import_module(f"rushlight.{name}")
        assert set(module.__all__) <= set(dir(module)), name


def test_a_star_import_has_all_names():
    names = {}
    exec("from rushlight import *", names)
    assert set(torch.__all__) <= names.keys()
    assert all(names[name] is getattr(torch, name) for name in torch.__all__)


def test_other_modules_can_be_imported_after_a_failure(tmp_path):
    (tmp_path / "written_here.py").write_text("found = True\n")
    program = f"""if True:
        import sys
        sys.modules["rushlight_autograd"] = None
        try:
            import rushlight
        except ImportError:
            sys.path.insert(0, {str(tmp_path)!r})
            import written_here
            print(written_here.found)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_import_loads_neither_numpy_nor_layers():
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, rushlight; print(*sys.modules)"],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert "rushlight_autograd" in loaded
    assert not {"numpy", "rushlight_nn", "rushlight_data", "rushlight_graph", "rushlight_profiler"} & set(
        loaded
    )
    # Modules that take longer to import than this package.
    assert not {"typing", "contextlib", "dataclasses", "inspect", "re"} & set(loaded) - set(ours_before())


def ours_before() -> list[str]:
    """Return the modules that the interpreter loads at its start."""
    return subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    ).stdout.split()


@pytest.mark.parametrize("name", ["default", "nothing"])
def test_the_provider_of_gradients_can_be_chosen(name):
    ended = subprocess.run(
        [sys.executable, "-c", "import rushlight; print(rushlight.autograd.grad.__module__)"],
        capture_output=True, text=True, env={**os.environ, "RUSHLIGHT_AUTOGRAD": name},
    )  # fmt: skip
    if name == "default":
        assert ended.stdout == "rushlight_autograd._backward\n", ended.stderr
    else:
        assert ended.returncode == 1
        assert (
            "RUSHLIGHT_AUTOGRAD=nothing: no provider of gradients is installed under that name"
            in ended.stderr
        )
        assert "hint: installed are default" in ended.stderr


def test_no_gpu_is_a_plain_answer():
    # Test environments usually have no GPU backend. If there is one, `is_available` must agree with the number of
    # GPUs.
    assert torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    if not torch.cuda.is_available():
        torch.cuda.manual_seed_all(1)
        torch.cuda.empty_cache()
        with pytest.raises(RuntimeError, match="no backend is attached"):
            torch.zeros(1, device="cuda")
