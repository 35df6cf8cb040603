"""The device kit, for the CPU and for a toy device that implements rushlight/backend.h."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight_core as core
import rushlight_core._C as _C
from rushlight_core import devices
from rushlight_testing.conformance import DeviceContract


class TestCpu(DeviceContract):
    device = "cpu"


@pytest.mark.swap
class TestToy(DeviceContract):
    device = "toy"

    @pytest.fixture(autouse=True)
    def _attached(self, toy_device: Path) -> None:
        assert devices.load_backend(toy_device) == "toy"

    def test_work_is_done_when_somebody_waits(self) -> None:
        x = core.ones(4, device="toy") + 1
        devices.synchronize("toy")
        assert x.cpu().tolist() == [2.0] * 4

    def test_its_memory_is_not_numpy_s(self) -> None:
        x = core.ones(2, device="toy")
        for view in (x.numpy, lambda: memoryview(x)):
            with pytest.raises((TypeError, RuntimeError, BufferError), match="toy"):
                view()

    def test_it_has_every_kernel_of_the_cpu(self) -> None:
        """Kernels of operators that have only an in-place form are included."""
        names = set(_C._kernels("toy"))
        assert set(_C._kernels("cpu")) <= names
        assert {"normal_", "scatter_", "index_add_", "add", "mm"} <= names

    def test_its_memory_ends(self) -> None:
        held: list[Any] = []
        with pytest.raises((RuntimeError, MemoryError), match="toy:0: out of memory"):
            while True:
                held.append(core.empty(1 << 22, device="toy:0"))
        held.clear()
        assert core.ones(1 << 20, device="toy:0").sum().item() == 1 << 20


@pytest.mark.swap
class TestToyWithAllocatorOfCore(DeviceContract):
    """The last toy device, whose memory is managed by core's caching allocator."""

    device = "toy"

    @pytest.fixture(autouse=True)
    def _last(self, toy_device: Path) -> Iterator[None]:
        devices.load_backend(toy_device)
        devices.set_device("toy:1")
        yield
        devices.set_device("toy:0")


@pytest.mark.swap
def test_a_backend_is_found_by_its_entry_point(toy_device: Path, tmp_path: Path) -> None:
    """An installed package provides the backend, which is loaded only when its device is used."""
    info = tmp_path / "toy_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rushlight.backends]\ntoy = toy_backend:path\n")
    (tmp_path / "toy_backend.py").write_text(f"def path():\n    return {str(toy_device)!r}\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import rushlight_core as core\n"
        "assert 'toy_backend' not in sys.modules\n"
        "assert core.devices.device_count('toy') == 2\n"
        "assert 'importlib.metadata' not in sys.modules\n"  # its import takes longer than the search
        "assert (core.ones(2, device='toy:1') + 1).cpu().tolist() == [2, 2]\n"
        "try: core.device('other')\n"
        "except RuntimeError as error: assert 'unknown device type' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)


def test_entry_points_are_found_as_by_importlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight_core._entry_points import load_entry_point

    first, second, packed = tmp_path / "first", tmp_path / "second", tmp_path / "packed.zip"
    texts = {
        first
        / "one_kit-2.0.dist-info": "[scripts]\nmine = no:thing\n\n[my.group]\n# other = a:b\nmine=os.path:sep [x]\n",
        second / "one_kit-1.0.dist-info": "[my.group]\nmine = os:curdir\nhidden = os:curdir\n",
        second / "Other.Kit-1.0.dist-info": "[my.group]\nmodule = os.path\n",
    }
    for folder, text in texts.items():
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {folder.name.partition('-')[0]}\nVersion: 1\n"
        )
        (folder / "entry_points.txt").write_text(text)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("zipped-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: zipped\nVersion: 1\n")
        archive.writestr("zipped-1.0.dist-info/entry_points.txt", "[my.group]\nzipped = os:pardir\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "not there"), str(first), str(second), *sys.path])
    names = ("mine", "module", "hidden", "other", "zipped")
    assert [load_entry_point("my.group", name) for name in names] == [os.sep, os.path, None, None, None]
    monkeypatch.setattr(sys, "path", [str(packed), *sys.path])
    assert [load_entry_point("my.group", name) for name in names] == [os.sep, os.path, None, None, os.pardir]


def test_a_backend_that_does_not_work(tmp_path: Path) -> None:
    """Its device raises an error with the cause, but queries return that there is no device."""
    info = tmp_path / "broken_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rushlight.backends]\ncuda = broken_backend:path\n")
    (tmp_path / "broken_backend.py").write_text("def path():\n    raise RuntimeError('no driver here')\n")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "import rushlight_core as core\n"
        "for _ in range(2):\n"
        "    assert core.devices.device_count('cuda') == 0\n"
        "    assert core.Stream().device.type == 'cpu'\n"
        "    with core.autocast('cuda'): pass\n"
        "    core.amp.GradScaler('cuda')\n"
        "    assert not core.ones(1).is_pinned()\n"
        "    for call in (lambda: core.ones(1, device='cuda'), lambda: core.Generator('cuda')):\n"
        "        try: call()\n"
        "        except RuntimeError as error: assert 'no driver here' in str(error), error\n"
        "        else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)


@pytest.mark.swap
def test_an_int_is_the_index_of_an_accelerator(toy_device: Path) -> None:
    devices.load_backend(toy_device)
    assert core.device(1) == core.device("toy:1")
    assert core.ones(1).to(1).device == core.zeros(1, device=1).device == core.device("toy:1")
    assert core.Generator(device=0).device == core.device("toy:0")


@pytest.mark.swap
def test_generators_of_a_device(toy_device: Path) -> None:
    """The numbers are the same on all devices. The device is kept by copies."""
    devices.load_backend(toy_device)
    on_cpu, there = core.Generator().manual_seed(5), core.Generator("toy").manual_seed(5)
    assert (on_cpu.device, there.device) == (core.device("cpu"), core.device("toy:0"))
    assert there.clone_state().device == pickle.loads(pickle.dumps(there)).device == there.device
    drawn = core.rand(8, device="toy", generator=there).cpu()
    assert drawn.equal(core.rand(8, generator=on_cpu))


def test_without_an_accelerator_an_int_is_no_device() -> None:
    program = (
        "import rushlight_core as core\n"
        "calls = (lambda: core.device(0), lambda: core.ones(1).to(0), lambda: core.zeros(1, device=0))\n"
        "for call in calls:\n"
        "    try: call()\n"
        "    except RuntimeError as error: assert 'there is no accelerator' in str(error), error\n"
        "    else: assert core.devices.device_count('cuda') > 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    for index in (-1, 128):
        with pytest.raises(RuntimeError, match="from 0 to 127"):
            core.device(index)
    with pytest.raises(TypeError):
        core.device(True)


@pytest.mark.swap
@pytest.mark.parametrize(
    ("content", "text"), [(None, "cannot open"), (b"no library", "cannot open")], ids=["missing", "junk"]
)
def test_what_is_no_backend_is_refused(content: bytes | None, text: str, tmp_path: Path) -> None:
    path = tmp_path / "backend.so"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RuntimeError, match=text):
        devices.load_backend(path)
    with pytest.raises(TypeError):
        devices.load_backend(3)  # type: ignore[arg-type]


def test_devices_without_a_backend() -> None:
    assert devices.device_count("cuda") == 0 or core.ones(1, device="cuda").device.type == "cuda"
    assert devices.device_count("cpu") == 1
    with pytest.raises(RuntimeError, match="device cpu:1: there is only one"):
        core.ones(1, device="cpu:1")
    assert (core.ones(2, device="cpu:0") + core.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    "name",
    [
        "memory_stats",
        "memory_snapshot",
        "reset_peak_memory_stats",
        "empty_cache",
        "mem_get_info",
        "get_device_properties",
    ],
)
def test_functions_for_devices_with_a_backend_name_themselves(name: str) -> None:
    for device in ("cpu", "meta"):
        with pytest.raises(RuntimeError) as caught:
            getattr(devices, name)(device)
        assert str(caught.value) == (
            f"{name}(device): must be a device with a backend, such as 'cuda', got {device}"
        )


def test_limits_of_memory_are_checked(toy_device: Path) -> None:
    devices.load_backend(toy_device)
    for wrong in (-1, 1 << 64):
        with pytest.raises(
            ValueError, match=rf"set_memory_limit\(nbytes\): must be from 0 to .*, got {wrong}"
        ):
            devices.set_memory_limit("toy:1", wrong)
    for kind in (1.5, "1", None):
        with pytest.raises(TypeError, match=r"set_memory_limit\(nbytes\): must be an int, got"):
            devices.set_memory_limit("toy:1", kind)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match=r"set_memory_limit\(device\): must be .*, got cpu"):
        devices.set_memory_limit("cpu", 1)
    assert devices.set_memory_limit("toy:1", 0) == 0


def test_what_a_device_is_made_of(toy_device: Path) -> None:
    devices.load_backend(toy_device)
    found = devices.get_device_properties("toy:1")
    assert found.name == "Toy 1"
    assert (found.total_memory, found.multi_processor_count, found.is_integrated) == (64 << 20, 1, False)
    assert str(found.uuid) == "00000000-0000-0000-0000-000000000000"
    assert repr(found).startswith("DeviceProperties(name='Toy 1', major=0, minor=0, total_memory=64MB")
    for device in ("toy:0", "toy:1"):
        free, total = devices.mem_get_info(device)
        x = core.ones(1 << 20, device=device)
        assert devices.mem_get_info(device)[0] <= free
        assert devices.mem_get_info(device)[1] == total == 64 << 20
        del x
