"""The conformance kit of the device interface, which tests the requirements that the tensors of a backend must meet.

The requirements do not depend on the operators for which a backend has kernels.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest

import rushlight_core as core
from rushlight_core import Tensor, devices
from rushlight_testing.comparison import assert_close
from rushlight_testing.conformance.contract import Contract
from rushlight_testing.samples import samples_of

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def counting(*shape: int, dtype: str = "float32") -> Tensor:
    """Return a CPU tensor with the values 0, 1, 2, …"""
    return core.arange(core.ones(shape).numel()).view(shape).to(getattr(core, dtype))


def moved(value: Any, device: str) -> Any:
    """Return a copy of an argument of a call, with its tensors moved to another device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, (tuple, list)):
        return type(value)(moved(v, device) for v in value)
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield all tensors, of any shape, in a result, which is a tensor or consists of nested tuples and lists.

    Example:
        >>> len(list(tensors_in((torch.ones(2), [torch.ones(3), 4]))))
        2
    """
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from tensors_in(one)


class DeviceContract(Contract):
    """Tests for a device whose backend is attached.

    Set `device` to the name of the device, and `kernels` to the operators that the device must support.

    Example::

        class TestMyDevice(DeviceContract):
            device = "mine"
            kernels = ("add", "mul", "sum", "mm")
    """

    device: ClassVar[str]
    kernels: ClassVar[tuple[str, ...]] = ("add", "mul", "sum")

    @property
    def first(self) -> core.device:
        """The device of new tensors, including its index."""
        return core.empty(0, device=self.device).device

    # --- tensors and copies ---

    def test_tensors_name_their_device(self) -> None:
        for made in (
            core.empty(2, device=self.device),
            core.tensor([1.0], device=self.device),
            core.zeros(2).to(self.device),
            core.empty_like(core.zeros(2), device=self.device),
        ):
            assert made.device == devices.current_device(self.device)
            assert made.device.type == self.device

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (4, 5, 2)])
    def test_a_round_trip(self, dtype: str, shape: tuple[int, ...]) -> None:
        host = counting(*shape, dtype=dtype)
        back = host.to(self.device).cpu()
        assert (back.dtype, back.shape) == (host.dtype, host.shape)
        assert back.tolist() == host.tolist()

    def test_copies_follow_strides(self) -> None:
        host = counting(3, 4)
        there = host.t().to(self.device)
        assert there.cpu().tolist() == host.t().tolist()
        assert there.select(1, 2).cpu().tolist() == host.t().select(1, 2).tolist()
        assert there.t().narrow(1, 1, 2).cpu().tolist() == host.narrow(1, 1, 2).tolist()

    def test_copies_convert(self) -> None:
        host = counting(2, 3)
        assert host.to(self.device, core.int64).cpu().tolist() == host.to(core.int64).tolist()
        there = host.to(self.device).to(core.float64)
        assert there.dtype == core.float64
        assert there.cpu().tolist() == host.tolist()

    def test_a_copy_through_a_view_is_seen_by_the_base(self) -> None:
        base = core.zeros(2, 3, device=self.device)
        version = base._version
        base.select(0, 1).copy_(core.tensor([1.0, 2.0, 3.0], device=self.device))
        base.select(1, 0).copy_(core.tensor(7.0))
        assert base.cpu().tolist() == [[7.0, 0.0, 0.0], [7.0, 2.0, 3.0]]
        assert base._version == version + 2

    def test_overlapping_copies(self) -> None:
        base = counting(6).to(self.device)
        base.narrow(0, 1, 5).copy_(base.narrow(0, 0, 5))
        assert base.cpu().tolist() == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]

    def test_copies_between_views_with_one_address(self) -> None:
        host = counting(3, 3)
        square = host.clone().to(self.device)
        square.copy_(square.t())
        assert square.cpu().tolist() == host.t().tolist()
        rows = host.clone().to(self.device)
        rows.copy_(rows[:1].expand(3, 3))
        assert rows.cpu().tolist() == [host[0].tolist()] * 3
        narrow = core.arange(8, dtype=core.int32).to(self.device)
        narrow.view(core.int64).copy_(narrow[:4])
        assert narrow.view(core.int64).cpu().tolist() == [0, 1, 2, 3]

    def test_filled_tensors(self) -> None:
        assert core.full((2, 2), 3, device=self.device).cpu().tolist() == [[3, 3], [3, 3]]
        assert core.ones(2, device=self.device, dtype=core.bool).cpu().tolist() == [True, True]
        assert core.empty(3, device=self.device).fill_(2.5).cpu().tolist() == [2.5] * 3
        assert core.empty(3, device=self.device).zero_().cpu().tolist() == [0.0] * 3

    def test_one_element_becomes_a_number(self) -> None:
        assert core.tensor([[4]], device=self.device).item() == 4
        assert float(core.tensor(2.5, device=self.device)) == 2.5
        assert bool(core.tensor(1, device=self.device))

    def test_printing_shows_values(self) -> None:
        assert "2.5" in repr(core.tensor([2.5], device=self.device))

    # --- operators ---

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8"])
    def test_kernels_compute_what_the_host_does(self, dtype: str) -> None:
        for op in operators():
            if op.base not in self.kernels:
                continue
            for text in op.samples:
                for here, there in zip(
                    samples_of(text.text, core, dtype), samples_of(text.text, core, dtype), strict=True
                ):
                    function = getattr(core, op.base)
                    wanted = function(*here.args, **here.kwargs)
                    if not any(isinstance(a, Tensor) for a in there.args):
                        continue
                    got = function(*moved(list(there.args), self.device), **there.kwargs)
                    assert got.device == self.first
                    rtol, atol = (2e-3, 1e-3) if dtype == "float16" else (None, None)
                    call = f"{op.name}({here.text})"
                    assert_close(got.cpu(), wanted, equal_nan=True, rtol=rtol, atol=atol, msg=call)

    def test_in_place_and_out(self) -> None:
        x = counting(2, 3).to(self.device)
        assert x.add_(1) is x
        x.mul_(x)
        assert x.cpu().tolist() == [[1.0, 4.0, 9.0], [16.0, 25.0, 36.0]]
        out = core.empty(0, device=self.device)
        assert core.add(x, x, alpha=-1, out=out) is out
        assert out.cpu().tolist() == [[0.0] * 3] * 2
        x.select(0, 0).add_(x.select(0, 1))
        assert x.cpu().tolist() == [[17.0, 29.0, 45.0], [16.0, 25.0, 36.0]]

    def test_a_number_of_the_host_joins_in(self) -> None:
        x = counting(3).to(self.device)
        assert (x + core.tensor(2)).cpu().tolist() == [2.0, 3.0, 4.0]
        assert (core.tensor(0.5, dtype=core.float64) * x).cpu().tolist() == [0.0, 0.5, 1.0]

    def test_devices_do_not_mix(self) -> None:
        other = "cpu" if self.device != "cpu" else "meta"
        here, there = core.ones(2, device=self.device), core.ones(2, device=other)
        for a, b in ((here, there), (there, here)):
            with pytest.raises(RuntimeError, match="on one device") as caught:
                a + b
            assert str(here.device) in str(caught.value)
            assert str(there.device) in str(caught.value)
        if self.device != "cpu":  # only a 0-d tensor of the host is accepted like a number by other devices
            with pytest.raises(RuntimeError, match="on one device"):
                core.ones(2) + core.tensor(1.0, device=self.device)

    def test_every_operator_computes_or_says_that_it_cannot(self) -> None:
        """Check that each operator returns a correct result or raises an error that names a device.

        An operator that reads device memory on the host would return a wrong result."""
        silent = []
        for op in operators():
            if "function" not in op.variants or op.random or op.is_inplace:
                continue
            function: Callable[..., Any] = getattr(core, op.base)
            for text in op.samples:
                pairs = zip(samples_of(text.text, core), samples_of(text.text, core), strict=True)
                for here, there in pairs:
                    try:
                        result = function(
                            *moved(list(there.args), self.device), **moved_values(there, self.device)
                        )
                        got = [t.cpu() for t in tensors_in(result)]
                    except NotImplementedError as error:
                        if self.device not in str(error):
                            silent.append(f"{op.name}({here.text}): {error}")
                        continue
                    except (RuntimeError, ValueError) as error:
                        # The operator creates a tensor on the host, or requires an argument there.
                        if not re.search("on one device|on the CPU", str(error)):
                            silent.append(f"{op.name}({here.text}): {error}")
                        continue
                    wanted = function(*here.args, **here.kwargs)
                    try:
                        for a, b in zip(got, tensors_in(wanted), strict=True):
                            assert_close(a, b.cpu(), equal_nan=True, rtol=1e-4, atol=1e-4)
                    except AssertionError as error:
                        silent.append(f"{op.name}({here.text}): {error}")
        assert not silent, "\n".join(silent)

    # --- the queue and memory ---

    def test_inputs_live_until_the_work_is_done(self) -> None:
        x = core.ones(10_000, device=self.device)
        y = x + x
        del x
        junk = core.full((10_000,), 9.0, device=self.device)
        assert y.sum().item() == 20_000
        del junk

    def test_a_long_chain_of_unfinished_work(self) -> None:
        x = core.zeros(8, device=self.device)
        for _ in range(500):
            x = x + 1
        devices.synchronize(self.device)
        assert x.cpu().tolist() == [500.0] * 8

    def test_memory_comes_back(self) -> None:
        for _ in range(200):
            core.zeros(1 << 18, device=self.device)
        gc.collect()
        assert core.ones(4, device=self.device).sum().item() == 4

    def test_memory_that_is_not_there(self) -> None:
        with pytest.raises((RuntimeError, MemoryError), match=r"(?i)memory|bytes"):
            core.empty(1 << 45, device=self.device)
        assert core.ones(4, device=self.device).sum().item() == 4

    # --- which device ---

    def test_devices_are_counted(self) -> None:
        count = devices.device_count(self.device)
        assert count >= 1
        with pytest.raises(RuntimeError, match=f"device {self.device}:{count}"):
            core.empty(1, device=f"{self.device}:{count}")

    def test_the_current_device_is_the_thread_s(self) -> None:
        before = devices.current_device(self.device)
        last = f"{self.device}:{devices.device_count(self.device) - 1}"
        devices.set_device(last)
        try:
            assert core.empty(1, device=self.device).device == core.empty(1, device=last).device
            assert devices.current_device(self.device) == core.empty(1, device=last).device
        finally:
            devices.set_device(before)

    def test_tensors_move_between_devices_of_one_kind(self) -> None:
        last = f"{self.device}:{devices.device_count(self.device) - 1}"
        there = counting(5).to(self.device).to(last)
        assert there.device == core.empty(1, device=last).device
        assert there.cpu().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def moved_values(sample: Any, device: str) -> dict[str, Any]:
    return {name: moved(value, device) for name, value in sample.kwargs.items()}


def operators() -> list[Any]:
    """Return the definitions of core's operators, which contain samples of arguments. Needs PyYAML.

    Example:
        >>> [op.name for op in operators() if op.family == "ctc" and op.samples]
        ['ctc_loss', 'ctc_loss.lists', '_ctc_loss', '_ctc_loss_backward']
    """
    from rushlight_core.codegen.loader import load_ops

    return load_ops()
