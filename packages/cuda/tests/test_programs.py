"""What programs use besides operators: autocast, scaled gradients, checkpoints, the default device and pinned batches."""

from __future__ import annotations

import threading

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader, Dataset

pytestmark = pytest.mark.usefixtures("driver")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_computes_products_in_half_precision(driver, dtype):
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), torch.randn(4, 6)
    grads = {}
    for device in ("cpu", "cuda"):
        net, x = net.to(device), x.to(device)
        net.zero_grad()
        with torch.autocast(device, dtype=dtype):
            y = net(x)
            assert y.dtype == dtype
            assert (y.float() + 1).dtype == torch.float32
            loss = nn.functional.mse_loss(y, torch.zeros(4, 3, device=device))
        assert loss.dtype == torch.float32
        loss.backward()
        grads[device] = [loss.detach().cpu(), *(p.grad.cpu() for p in net.parameters())]
        assert all(p.grad.dtype == torch.float32 for p in net.parameters())
        assert net(x).dtype == torch.float32
    for host, found in zip(*grads.values(), strict=True):
        torch.testing.assert_close(found, host, rtol=2e-2, atol=2e-3)


def test_scaled_gradients(driver):
    """A step whose gradients overflow is skipped, and the scale is halved. Other steps are those without a scale."""
    steps = {}
    for scaled in (False, True):
        weight = torch.tensor([1.0, 2.0], device="cuda", requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.25)
        scaler = torch.amp.GradScaler("cuda", init_scale=8.0, growth_interval=2, enabled=scaled)
        seen = []
        for factor in (1.0, 1.0, float("inf"), 1.0):
            optimizer.zero_grad()
            if factor == 1.0 or scaled:
                scaler.scale((weight * torch.tensor([0.5, factor], device="cuda")).sum()).backward()
                scaler.unscale_(optimizer)
                if scaled and factor != 1.0:
                    assert weight.grad.cpu().isinf().any()
                scaler.step(optimizer)
                scaler.update()
            seen.append(weight.tolist())
            if scaled:
                assert scaler.get_scale() == [8.0, 16.0, 8.0, 8.0][len(seen) - 1]
        steps[scaled] = seen
    assert steps[True] == steps[False]
    assert steps[True][2] == steps[True][1] != steps[True][0]


def test_checkpoints_are_loaded_to_the_device(driver, tmp_path):
    net = nn.Linear(3, 2)
    state = {**net.state_dict(), "again": net.weight.detach().t(), "step": 4}
    path = tmp_path / "state.pt"
    torch.save(state, path)
    places = ("cuda", torch.device("cuda", 0), {"cpu": "cuda:0"}, lambda storage, _: storage.cuda())
    for place in places:
        found = torch.load(path, map_location=place)
        assert {t.device for t in found.values() if isinstance(t, torch.Tensor)} == {torch.device("cuda:0")}
        assert found["weight"].untyped_storage().data_ptr() == found["again"].untyped_storage().data_ptr()
        assert found["again"].cpu().equal(state["again"])
        assert found["step"] == 4
    there = nn.Linear(3, 2, device="cuda")
    there.load_state_dict({name: found[name] for name in ("weight", "bias")})
    assert there.weight.device.type == "cuda"
    torch.save(there.state_dict(), path)
    assert torch.load(path)["weight"].device == torch.device("cuda:0")
    back = torch.load(path, map_location="cpu")
    assert back["weight"].device.type == "cpu"
    assert back["weight"].equal(net.weight.detach())


def test_the_default_device(driver):
    torch.set_default_device("cuda")
    try:
        made = [torch.zeros(2), torch.tensor([1, 2]), torch.arange(3), torch.randn(2), nn.Linear(2, 2).weight]
        assert {t.device for t in made} == {torch.device("cuda:0")}
        assert torch.get_default_device() == torch.device("cuda:0")
        assert torch.ones(1, device="cpu").device.type == "cpu"
        assert (torch.eye(2) @ torch.ones(2, 1)).tolist() == [[1], [1]]
        assert torch.Generator(device="cuda").device.type == "cuda"
    finally:
        torch.set_default_device("cpu")
    assert torch.zeros(1).device.type == "cpu"
    with torch.device("cuda"):
        assert torch.zeros(1).device.type == "cuda"
    assert torch.zeros(1).device.type == "cpu"


class Batches(Dataset):
    """Samples that count how many of them have been read."""

    def __init__(self) -> None:
        self.read = threading.Condition()
        self.count = 0

    def __len__(self) -> int:
        return 12

    def __getitem__(self, i: int) -> torch.Tensor:
        with self.read:
            self.count += 1
            self.read.notify_all()
        return torch.full((5000,), float(i))


def test_batches_are_pinned_and_copied_while_the_host_goes_on(driver, monkeypatch):
    """A thread pins a batch while the caller uses the batch before it, and neither pins nor copies wait for the device."""
    from rushlight_data import pinning

    pin, pinned = pinning.pin, threading.Condition()
    threads: list[int] = []

    def watched(data, device=""):
        found = pin(data, device)
        with pinned:
            threads.append(threading.get_ident())
            pinned.notify_all()
        return found

    monkeypatch.setattr(pinning, "pin", watched)
    samples = Batches()
    loader = DataLoader(samples, 2, num_workers=2, transport="threads", pin_memory=True)
    meanwhile, sums = [], []
    torch.cuda.synchronize()
    torch.empty(1).pin_memory()
    for number, batch in enumerate(loader):
        assert batch.is_pinned()
        before = driver.fake_cuda_waits()
        there = batch.to("cuda", non_blocking=True)
        sums.append(there.sum())
        assert driver.fake_cuda_waits() == before
        if number == 0:
            with samples.read:  # the workers read the next batches
                samples.read.wait_for(lambda: samples.count >= 10, 20)
        elif number < 3:
            with pinned:
                meanwhile.append(pinned.wait_for(lambda: len(threads) > number + 1, 20))  # noqa: B023
    assert meanwhile == [True, True]
    assert len(threads) == 6
    assert threading.get_ident() not in threads
    assert [x.item() for x in sums] == [5000.0 * (4 * i + 1) for i in range(6)]
