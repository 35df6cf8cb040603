"""`import torch` that imports rushlight: in a program, from the command line, and in spawned processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rushlight.torch_version import TorchVersion


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a new interpreter, because the module `torch` is replaced for a whole process."""
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


def output(*arguments: str, cwd: Path) -> str:
    done = run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


NAMES = """
import importlib.metadata
import importlib.util

import rushlight.as_torch

assert not rushlight.as_torch.is_installed()
rushlight.as_torch.install()
rushlight.as_torch.install()
assert rushlight.as_torch.is_installed()

import torch
import torch.nn.functional as F
import torch.utils._pytree
from torch import nn, optim
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader

assert nn is rushlight.nn and nn.Linear is rushlight.nn.Linear and F is rushlight.nn.functional
assert torch.optim is optim is rushlight.optim and torch.linalg is rushlight.linalg
assert torch.zeros is rushlight.zeros and torch.zeros is vars(torch)["zeros"]
assert torch.__version__ >= "2.2" and torch.__version__ > (1, 13) and str(torch.__version__).startswith("2.")
assert importlib.metadata.version("torch") == torch.__version__
assert rushlight.__version__ not in (torch.__version__, None)
assert importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torch.nn.functional") is not None
assert importlib.util.find_spec("torch._no_such_module") is None
assert torch.nn.__spec__.name == "rushlight.nn"

# Files that have the name of a function beside them leave it the name.
import torch.autograd.gradcheck
import torch.multiprocessing.spawn
import torch.nn.utils.spectral_norm
from torch.multiprocessing.spawn import ProcessRaisedException
from torch.nn.utils.weight_norm import weight_norm

assert torch.nn.utils.weight_norm is weight_norm
assert callable(torch.autograd.gradcheck) and callable(torch.multiprocessing.spawn)
assert callable(torch.nn.utils.spectral_norm)
assert "'torch.Tensor'" in str(type(torch.ones(1)))
for missing, text in (
    ("import torch.no_such_module", "torch.no_such_module"),
    ("torch.no_such_name", "docs/differences.md"),
):
    try:
        exec(missing)
    except (ImportError, AttributeError) as error:
        assert text in str(error), error
    else:
        raise SystemExit(missing)
print("done")
"""


def test_names_are_rushlights(tmp_path: Path) -> None:
    assert output("-c", NAMES, cwd=tmp_path) == "done\n"


def test_refuses_where_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    done = run("-c", "import torch, rushlight.as_torch; rushlight.as_torch.install()", cwd=tmp_path)
    assert done.returncode == 1
    assert "RuntimeError: as_torch.install(): torch is imported already, from" in done.stderr
    assert "hint: call install() before" in done.stderr


def test_takes_the_place_of_an_installed_torch_and_of_an_alias(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise SystemExit('the other one')")
    program = "import rushlight.as_torch as a; a.install(); import torch; print(torch.ones(2).sum().item())"
    assert output("-c", program, cwd=tmp_path) == "2.0\n"
    alias = "import sys, rushlight; sys.modules['torch'] = rushlight; " + program
    assert output("-c", alias, cwd=tmp_path) == "2.0\n"


PROGRAM = """
import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(index**2)


def double(x):
    return 2 * x


if __name__ == "__main__":
    print(__file__, sys.argv[1:], __package__)
    loader = DataLoader(Squares(), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    print([batch.tolist() for batch in loader])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [1, 2]))
    raise SystemExit(3)
"""


def test_a_program_and_the_processes_it_spawns(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    done = run("-m", "rushlight.as_torch", "train.py", "--epochs", "3", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert done.stdout.splitlines() == [
        f"{program} ['--epochs', '3'] None",
        "[[0, 1], [4, 9]]",
        "[2, 4]",
    ]


def test_modules_and_packages(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("import torch\nvalue = torch.arange(3).sum().item()\n")
    (package / "__main__.py").write_text(
        "from .helper import value\nimport sys\nprint(value, sys.argv[1:])\n"
    )
    assert output("-m", "rushlight.as_torch", "-m", "package", "-x", cwd=tmp_path) == "3 ['-x']\n"
    assert (
        output("-W", "error", "-m", "rushlight.as_torch", "-m", "package.__main__", cwd=tmp_path) == "3 []\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["no_such_file.py"], "there is no file"),
        ([], "usage:"),
        (["--wrong"], "usage:"),
        (["-m", "no_such"], "no_such"),
    ],
)
def test_wrong_command_lines(tmp_path: Path, arguments: list[str], text: str) -> None:
    done = run("-m", "rushlight.as_torch", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert text in done.stderr


def test_versions_compare_as_versions() -> None:
    version = TorchVersion("2.13.0+rushlight0.1.0")
    assert version > "2.13.0"  # a version with a local part is later
    assert version > "2.2"
    assert version >= (2, 13)
    assert version < "2.14.0.dev1"
    assert TorchVersion("2.14") > "2.14.0.dev1"
    assert TorchVersion("2.0") == "2.0.0" == TorchVersion("2.0.0")
    assert TorchVersion("2.0.0a0") < "2.0.0rc1"
    assert TorchVersion("2.0.0rc1") < "2.0.0"
    assert TorchVersion("2.0.0.post1") > (2, 0, 0)
    assert version != "no version"
    assert hash(version) == hash(str(version))
    assert sorted(map(TorchVersion, ["2.10", "2.9", "1.13.1"])) == ["1.13.1", "2.9", "2.10"]
