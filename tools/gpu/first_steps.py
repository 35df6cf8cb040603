"""The first program on a new machine: each step prints a line, and the last line counts the steps that failed."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable

from gpu import plugin

STEPS: list[Callable[[], object]] = []


def step(function: Callable[[], object]) -> Callable[[], object]:
    STEPS.append(function)
    return function


@step
def device_is_there() -> str:
    import rushlight as torch

    assert torch.cuda.is_available()
    return f"{torch.cuda.device_count()} devices, {torch.cuda.get_device_name(0)}"


@step
def arithmetic() -> None:
    import rushlight as torch

    x = torch.arange(10000.0).reshape(100, 100)
    there = x.cuda()
    assert ((there.t() * 2 + there).sum(1).cpu() == (x.t() * 2 + x).sum(1)).all()


@step
def matrix_products() -> None:
    import rushlight as torch

    torch.manual_seed(0)
    for dtype, off in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2), (torch.float16, 1e-2)):
        a, b = torch.randn(64, 96), torch.randn(96, 32)
        found = (a.to(dtype).cuda() @ b.to(dtype).cuda()).float().cpu()
        wanted = a.to(dtype).float() @ b.to(dtype).float()
        assert (found - wanted).abs().max() <= off * wanted.abs().max(), dtype


@step
def random_numbers_are_those_of_the_cpu() -> None:
    import rushlight as torch

    drawn = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(3)
        drawn.append(torch.rand(1000, device=device).cpu())
    assert (drawn[0] == drawn[1]).all()


@step
def streams_and_events() -> str:
    import rushlight as torch

    side, first, last = torch.cuda.Stream(), torch.cuda.Event(True), torch.cuda.Event(True)
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        first.record()
        for _ in range(100):
            x = x + 1
        last.record()
    torch.cuda.current_stream().wait_stream(side)
    assert x.sum().item() == 101 << 20
    return f"100 sums of 1 Mi numbers: {first.elapsed_time(last):.3f} ms"


@step
def a_bad_index_is_told_and_the_device_stays_usable() -> str:
    import rushlight as torch

    table, bad = torch.ones(4, 3, device="cuda"), torch.tensor([0, 9], device="cuda")
    try:
        torch.index_select(table, 0, bad)
        torch.cuda.synchronize()
    except IndexError as error:
        assert table.sum().item() == 12
        return str(error)
    raise AssertionError("no IndexError")


@step
def out_of_memory_is_told_and_the_device_stays_usable() -> str:
    import rushlight as torch

    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        assert torch.ones(3, device="cuda").sum().item() == 3
        return str(error).splitlines()[0]
    raise AssertionError("no OutOfMemoryError")


@step
def a_network_trains() -> str:
    import rushlight as torch

    losses = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        x, y = torch.randn(256, 20), torch.randn(256, 1)
        x, y = x.to(device), y.to(device)
        torch.manual_seed(2)
        net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01, fused=True)
        seen = []
        for _ in range(50):
            optimizer.zero_grad()
            loss = ((net(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            seen.append(loss)
        losses[device] = [loss.item() for loss in seen]
    apart = max(abs(a - b) / a for a, b in zip(losses["cpu"], losses["cuda"], strict=True))
    assert losses["cuda"][-1] < 0.5 * losses["cuda"][0]
    assert apart < 1e-2, apart
    return (
        f"loss from {losses['cuda'][0]:.4f} to {losses['cuda'][-1]:.4f}; at most {apart:.1e} from the CPU's"
    )


@step
def memory_is_reused() -> str:
    import rushlight as torch

    sizes = []
    for _ in range(5):
        x = torch.randn(1 << 18, device="cuda")
        (x * 2 + x).sum().item()
        sizes.append(torch.cuda.memory_reserved())
    assert len(set(sizes[1:])) == 1, sizes
    return f"{sizes[-1]} bytes reserved after the second round and the last"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    plugin.add_option(parser)
    plugin.attach(parser.parse_args().plugin)
    failed = 0
    for one in STEPS:
        try:
            said = one()
        except Exception:
            failed += 1
            traceback.print_exc()
            said = "FAILED"
        print(f"{one.__name__}: {said or 'fine'}", flush=True)
    print(f"{len(STEPS) - failed} of {len(STEPS)} steps are fine")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
