"""`spawn`, and the errors that it raises."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp
from rushlight_multiprocessing.spawn import start_processes


def fill(i, t):
    t[i] = i + 1


def fail(i):
    if i == 1:
        raise KeyError("no such thing")
    time.sleep(100)


def fail_before_the_other(i, t):
    if i == 1:
        raise KeyError("no such thing")
    time.sleep(0.3)
    t[0] = 1


class PickyError(Exception):
    def __init__(self, a, b):
        super().__init__(a)


def fail_oddly(i):
    raise PickyError(1, 2)


def leave(i, how):
    if i == 0:
        if how == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_arguments_are_shared():
    t = mp.share_memory_(core.zeros(3))
    assert start_processes(fill, (t,), nprocs=3, start_method="fork") is None
    assert t.tolist() == [1, 2, 3]


def test_without_join():
    t = mp.share_memory_(core.zeros(2))
    context = start_processes(fill, (t,), nprocs=2, join=False, start_method="fork")
    assert len(context.pids()) == 2
    while not context.join(timeout=30):
        pass
    assert context.join()
    assert t.tolist() == [1, 2]


def test_an_exception_ends_all():
    context = start_processes(fail, nprocs=3, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException, match="no such thing") as caught:
        while not context.join():
            pass
    assert caught.value.error_index == 1
    assert caught.value.pid == caught.value.error_pid == context.pids()[1]
    assert isinstance(caught.value.__cause__, KeyError)
    assert "in fail" in str(caught.value)
    assert not any(map(alive, context.pids()))


def test_others_may_end_within_the_grace_period():
    t = mp.share_memory_(core.zeros(1))
    context = start_processes(fail_before_the_other, (t,), nprocs=2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException, match="no such thing"):
        context.join(grace_period=60)
    assert t.item() == 1
    assert [process.exitcode for process in context.processes] == [0, 1]


def test_an_exception_that_cannot_be_sent():
    with pytest.raises(mp.ProcessRaisedException, match="PickyError"):
        start_processes(fail_oddly, nprocs=1, start_method="fork")


@pytest.mark.parametrize(("how", "code", "name"), [("exit", 7, None), ("kill", -9, "SIGKILL")])
def test_a_process_that_ends(how, code, name):
    with pytest.raises(mp.ProcessExitedException) as caught:
        start_processes(leave, (how,), nprocs=2, start_method="fork")
    assert caught.value.exit_code == code
    assert caught.value.signal_name == name
    assert caught.value.error_index == 0
    assert (name or "exit code 7") in str(caught.value)


def test_errors_survive_pickling():
    import pickle

    error = pickle.loads(pickle.dumps(mp.ProcessExitedException("text", 1, 22, -9, "SIGKILL")))
    assert (error.error_index, error.pid, error.exit_code, error.signal_name) == (1, 22, -9, "SIGKILL")
    assert isinstance(error, mp.ProcessException)


def test_spawned_interpreters(run_script):
    run_script("""
        import rushlight_core as core
        import rushlight_multiprocessing as mp

        def fill(i, t):
            t[i] = i + 1

        def fail(i):
            raise ValueError(f"from {i}")

        if __name__ == "__main__":
            t = core.zeros(2)
            mp.spawn(fill, (mp.share_memory_(t),), nprocs=2)
            assert t.tolist() == [1, 2]
            try:
                mp.spawn(fail)
            except mp.ProcessRaisedException as error:
                assert "from 0" in str(error) and isinstance(error.__cause__, ValueError)
            else:
                raise SystemExit("no error")
    """)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_end_with_a_killed_parent(run_script, method):
    # A program that has started workers is killed. The workers, which sleep forever, must end too.
    run_script(
        """
        import os, signal, subprocess, sys, time
        import rushlight_multiprocessing as mp

        def sleep(i, conn):
            conn.send(os.getpid())
            while True:
                time.sleep(100)

        if __name__ == "__main__" and sys.argv[1:] and sys.argv[1] == "parent":
            ours, theirs = mp.Pipe()
            mp.start_processes(sleep, (theirs,), nprocs=2, join=False, start_method=sys.argv[2])
            print(ours.recv(), ours.recv(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        elif __name__ == "__main__":
            command = [sys.executable, __file__, "parent", sys.argv[1]]
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
            pids = [int(pid) for pid in out.split()]
            assert len(pids) == 2
            while pids:  # the watchdog ends this if it does not end
                for pid in list(pids):
                    try:
                        state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
                    except FileNotFoundError:
                        state = "Z"
                    if state == "Z":
                        pids.remove(pid)
                time.sleep(0.01)
        """,
        method,
    )
