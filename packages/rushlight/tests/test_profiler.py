"""The profiler with autograd: backward nodes, and the arrows from the operators that recorded them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time

import pytest

import rushlight as torch
from rushlight.profiler import profile, record_function
from rushlight.utils.data import DataLoader, Dataset
from rushlight_testing.trace_format import trace_problems

ONES = torch.tensor([1.0, 1.0])


def recorded(work, **options):
    with profile(**options) as prof:
        work()
    return prof


def test_every_node_has_its_operator():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    prof = recorded(lambda: ((x + x) * x).backward(ONES))
    events = prof.events()
    nodes = [event for event in events if event.kind == "node" and event.name != "AccumulateGrad"]
    recorded_by = [event for event in events if event.kind == "operator" and event.sequence_nr > 0]
    operators = {event.sequence_nr: event for event in recorded_by}
    assert [node.name.lower().rstrip("0").removesuffix("backward") for node in nodes] == ["mul", "add"]
    for node in nodes:
        operator = operators[node.sequence_nr]
        assert node.name.lower().startswith(operator.name)
        assert node.fwd_thread == threading.get_native_id()
        assert operator.time_range.end <= node.time_range.start


def test_the_operators_of_a_node_are_inside_it():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    prof = recorded(lambda: (x * x).backward(ONES))
    multiply = next(event for event in prof.events() if event.kind == "node" and event.name.startswith("Mul"))
    assert multiply.cpu_children
    assert all(child.kind == "operator" for child in multiply.cpu_children)


def test_nothing_is_numbered_without_gradients():
    x = torch.tensor([1.0, 2.0])
    prof = recorded(lambda: x + x)
    assert prof.events()[0].sequence_nr == -1


def test_a_write_to_a_view_leads_to_the_node_that_runs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def work():
        y = x * 1
        y[0].add_(x[1])
        y.backward(ONES)

    events = recorded(work).events()
    numbers = {event.sequence_nr for event in events if event.kind == "node"}
    write = next(event for event in events if event.name == "add_" and event.sequence_nr > 0)
    assert write.sequence_nr in numbers


def test_arrows_in_the_trace(tmp_path):
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def work():
        with record_function("forward"):
            y = (x + x) * x
        with record_function("backward"):
            y.backward(ONES)

    prof = recorded(work, record_shapes=True, profile_memory=True)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    entries = json.loads(path.read_text())["traceEvents"]
    slices = {(entry["tid"], entry["ts"]): entry["name"] for entry in entries if entry["ph"] == "X"}
    starts = {entry["id"]: slices[entry["tid"], entry["ts"]] for entry in entries if entry["ph"] == "s"}
    ends = {entry["id"]: slices[entry["tid"], entry["ts"]] for entry in entries if entry["ph"] == "f"}
    pairs = {(starts[number], ends[number].rstrip("0")) for number in starts}
    assert {("add", "AddBackward"), ("mul", "MulBackward")} <= pairs


def test_the_trace_of_training_keeps_the_rules_of_the_format(tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 2)
    )
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        with record_function("forward"):
            loss = model(torch.ones(8, 1, 6, 6)).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        optimizer.step()

    def work():
        other = threading.Thread(target=step)
        other.start()
        other.join()
        step()

    prof = recorded(work, record_shapes=True, profile_memory=True, with_stack=True)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    text = (tmp_path / "trace.json").read_text()
    assert trace_problems(text) == []
    entries = json.loads(text)["traceEvents"]
    assert {entry["ph"] for entry in entries} == {"X", "s", "f", "C", "i", "M"}
    names = {entry["name"] for entry in entries if entry["ph"] == "X"}
    assert {"forward", "convolution", "relu", "linear"} <= names
    assert any(name.startswith("ConvolutionBackward") for name in names)


def test_backward_on_a_thread_that_starts_meanwhile():
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def work():
        y = x * x
        thread = threading.Thread(target=y.backward, args=(ONES,))
        thread.start()
        thread.join()

    node = next(event for event in recorded(work).events() if event.kind == "node")
    assert node.thread != threading.get_native_id()
    assert node.fwd_thread == threading.get_native_id()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_shows_how_long_its_batches_were_waited_for(workers):
    """The time is measured in the training loop, so there is a span even with workers, and the profiler's advice uses it."""

    loader = DataLoader(Slow(), batch_size=2, num_workers=workers)
    prof = recorded(lambda: [batch + 1 for batch in loader])
    waits = [event for event in prof.events() if event.name == "DataLoader.next"]
    assert len(waits) == 4  # the last call ends the epoch
    assert any(advice.rule == "waiting for data" for advice in prof.advice())


class Slow(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.ones(2) * index


def test_a_program_runs_under_the_profiler(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, rushlight as torch\nprint(sys.argv[1:])\ntorch.ones(2, 2) @ torch.ones(2, 2)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.profiler", str(program), "argument"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['argument']\n")
    assert "\nmm " in done.stdout
