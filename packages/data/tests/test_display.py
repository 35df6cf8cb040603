"""The progress bar, and the line at the end of an epoch."""

from __future__ import annotations

import io
import re
import types

import pytest

from rushlight_data import DataLoader, IterableDataset


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("rushlight_data.display.sys", types.SimpleNamespace(stderr=stream))
    monkeypatch.setattr("rushlight_data.display._SECONDS", 0.0)
    return stream


@pytest.mark.parametrize("num_workers", [0, 1])
def test_bar(terminal, num_workers):
    loader = DataLoader(range(8), 2, num_workers=num_workers, progress=True)
    for _ in range(2):
        list(loader)
    states = terminal.getvalue().split("\r")[1:]
    assert len(states) == 10
    assert [re.search(r"epoch (\d): +(\d+)% .*\| (\d)/4 batches", state).groups() for state in states[:5]] == [
        ("0", "25", "1"), ("0", "50", "2"), ("0", "75", "3"), ("0", "100", "4"), ("0", "100", "4"),
    ]  # fmt: skip
    assert "s left" in states[0]
    assert states[4].endswith("\n")
    assert "epoch 1" in states[5]
    assert "|###############               |" in states[1]


def test_bar_of_a_resumed_epoch(terminal):
    loader = DataLoader(range(8), 2)
    next(iter(loader))
    other = DataLoader(range(8), 2, progress=True)
    other.load_state_dict(loader.state_dict())
    list(other)
    assert "2/4" in terminal.getvalue().split("\r")[1]


def test_abandoned_bar_ends_its_line(terminal):
    for _ in DataLoader(range(8), progress=True):
        break
    assert terminal.getvalue().endswith("\n")
    assert terminal.getvalue().count("\n") == 1


def test_without_a_terminal_one_line_is_written(capsys):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    list(DataLoader(Stream(), 2, progress=True))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "3/3 batches" in captured.err


def test_count_of_a_stream_without_length(terminal):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(5))

    iterator = iter(DataLoader(Stream(), 2, progress=True))
    next(iterator)
    assert "epoch 0: 1 batches," in terminal.getvalue()


@pytest.mark.parametrize("num_workers", [0, 1])
def test_report_is_about_one_epoch(capsys, num_workers):
    loader = DataLoader(range(8), 2, num_workers=num_workers, report=True)
    stats = loader.stats()
    list(loader)
    stats.waited += 1e6  # waiting time of an earlier epoch
    list(loader)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 0: ")
    assert lines[1].startswith("epoch 1: ")
    assert all(line.endswith(".") and "%" in line for line in lines)
    before = stats.copy()
    stats.used += 3e6
    assert stats.since(before).used == 3e6
    assert stats.since(before).waited == 0


def test_nothing_is_written_unless_asked_for(capsys):
    list(DataLoader(range(8), 2))
    assert capsys.readouterr().err == ""
