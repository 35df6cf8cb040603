"""Workers end, whatever they are doing, when the training process ends: by Ctrl-C, by a signal or normally."""

from __future__ import annotations

import pytest

PROGRAM = """
    import os, signal, subprocess, sys, time

    CHILD = '''
    import os, signal, sys, time
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job, as CI may be, ignores it
    import rushlight_core as core
    from rushlight_data import DataLoader, Dataset
    if sys.argv[1] == "pickling":
        from rushlight_data.transport import PicklingTransport as Transport
    else:
        from rushlight_multiprocessing.transport import SharedMemoryTransport as Transport

    class Slow(Dataset):
        def __len__(self):
            return 1000

        def __getitem__(self, i):
            if i >= 6:
                os.write(1, f"busy {os.getpid()}\\\\n".encode())  # in one piece
                time.sleep(1000)
            return core.ones(100, 100)

    def main():
        persistent = sys.argv[2] == "exit"
        loader = DataLoader(Slow(), 1, num_workers=2, transport=Transport(), persistent_workers=persistent)
        for i, batch in enumerate(loader):
            if i == 4 and sys.argv[2] == "exit":
                sys.stdin.readline()  # until both workers are busy
                sys.exit(0)
        raise AssertionError

    main()
    '''

    def alive(pid):
        try:
            return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
        except FileNotFoundError:
            return False

    transport, how = sys.argv[1:]
    # A session of its own, as a terminal would give it: Ctrl-C goes to the process and its workers alike.
    child = subprocess.Popen(
        [sys.executable, "-c", __import__("textwrap").dedent(CHILD), transport, how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )
    lines = [child.stdout.readline().split() for _ in range(2)]
    if not all(lines):
        sys.exit(f"the program ended early: {child.stderr.read()}")
    pids = [int(pid) for _, pid in lines]
    assert len(set(pids)) == 2
    if how == "ctrl-c":
        os.killpg(child.pid, signal.SIGINT)
    elif how == "ctrl-c twice":
        os.killpg(child.pid, signal.SIGINT)
        time.sleep(0.2)
        os.killpg(child.pid, signal.SIGINT)
    elif how == "kill":
        os.kill(child.pid, signal.SIGKILL)
    elif how == "terminate":
        os.kill(child.pid, signal.SIGTERM)
    out, err = child.communicate("go\\n")
    if how == "ctrl-c":
        assert child.returncode == -signal.SIGINT, (child.returncode, err)
        assert err.count("Traceback") == 1, err  # workers say nothing
        assert "KeyboardInterrupt" in err
    elif how == "exit":
        assert child.returncode == 0, err
        assert err == "", err
    while any(map(alive, pids)):
        time.sleep(0.01)
"""


@pytest.mark.parametrize("how", ["ctrl-c", "ctrl-c twice", "kill", "terminate", "exit"])
def test_workers_end_with_the_training_process(run_script, processes, how):
    run_script(PROGRAM, processes.name, how)


INTERRUPTED_FINALIZER = """
    import sys, time
    import rushlight_core as core
    from rushlight_data import DataLoader, Dataset
    from rushlight_data.transport import PicklingTransport

    class Slow(Dataset):
        def __len__(self):
            return 1000

        def __getitem__(self, i):
            if i >= 6:
                time.sleep(1000)
            return core.ones(3)

    class Interrupted:
        def __del__(self):
            raise KeyboardInterrupt  # as if Ctrl-C came now

    def order(last):
        for i in range(1000):
            if i == last:
                Interrupted()
            yield i

    for last in (0, 3, 7):  # while the loader starts, while it goes on, and just before it waits
        loader = DataLoader(Slow(), 1, sampler=order(last), num_workers=2, transport=PicklingTransport())
        try:
            for batch in loader:
                pass
        except KeyboardInterrupt:
            print("interrupted", end=" ")
    assert sys.unraisablehook is sys.__unraisablehook__
"""


def test_ctrl_c_within_a_finalizer_ends_the_loop(run_script):
    """Python prints and discards exceptions of finalizers. The loader must not continue to wait after a discarded Ctrl-C."""
    assert run_script(INTERRUPTED_FINALIZER) == "interrupted interrupted interrupted "
