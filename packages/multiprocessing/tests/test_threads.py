"""The number of threads that new processes compute with."""

from __future__ import annotations

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp

SCRIPT = """
    import os, sys
    import rushlight_core as core
    import rushlight_multiprocessing as mp

    def put_number(_, numbers, stop):
        numbers.put(core.get_num_threads())
        stop.wait()

    if __name__ == "__main__":
        method = sys.argv[1]
        os.environ.pop("OMP_NUM_THREADS", None)
        core.set_num_threads(7)
        ctx = mp.get_context(method)
        numbers, stop = ctx.SimpleQueue(), ctx.Event()
        processes = []
        for i in range(2):
            processes.append(ctx.Process(target=put_number, args=(i, numbers, stop)))
            processes[-1].start()
            print(numbers.get())
        group = mp.start_processes(put_number, (numbers, stop), 3, join=False, start_method=method)
        print([numbers.get() for _ in range(3)])
        stop.set()
        while not group.join():
            pass
        for process in processes:
            process.join()
        with ctx.Pool(2) as pool:
            print(pool.apply(core.get_num_threads))
"""


@pytest.mark.parametrize(("method", "second"), [("fork", 7), ("spawn", 3), ("forkserver", 3)])
def test_new_processes_share_the_threads(run_script, method, second):
    assert run_script(SCRIPT, method).splitlines() == ["7", str(second), "[2, 2, 2]", "3"]


@pytest.fixture
def threads(monkeypatch):
    """Let this process compute with 6 threads, whatever the environment chooses."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = core.get_num_threads()
    core.set_num_threads(6)
    yield 6
    core.set_num_threads(before)


def test_a_pool_of_more_processes_than_threads(threads):
    with mp.get_context("fork").Pool(threads + 1) as pool:
        assert pool.apply(core.get_num_threads) == 1


def test_the_program_chooses_the_number_of_threads(threads, monkeypatch):
    ctx = mp.get_context("fork")
    with ctx.Pool(2, core.set_num_threads, (5,)) as pool:
        assert pool.apply(core.get_num_threads) == 5
    with ctx.Pool(2, maxtasksperchild=1) as pool:
        assert [pool.apply(core.get_num_threads) for _ in range(4)] == [3] * 4  # also in replaced processes
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    with ctx.Pool(2) as pool:
        assert pool.apply(core.get_num_threads) == threads


def test_an_environment_variable_chooses_the_number_of_threads(run_script):
    out = run_script("""
        import os
        import rushlight_core as core
        import rushlight_multiprocessing as mp

        if __name__ == "__main__":
            core.set_num_threads(7)
            os.environ["OMP_NUM_THREADS"] = "4"
            with mp.get_context("spawn").Pool(2) as pool:
                print(pool.apply(core.get_num_threads))
    """)
    assert out == "4\n"
