"""The package as a replacement for the standard module."""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.pool

import pytest

import rushlight_core as core
import rushlight_multiprocessing as mp

SCRIPT = """
    import sys
    import rushlight_core as core
    import rushlight_multiprocessing as mp

    class Weight(core.Tensor):
        pass

    def child(tasks, results, shared, weight, conn, columns):
        shared += 1
        assert type(weight) is Weight and weight.requires_grad
        assert columns.stride() == (1, 4), columns.stride()
        for _ in range(3):
            results.put(tasks.get() * 2)
        conn.send(("pipe", shared.clone(), weight))

    class Adder(mp.get_context(sys.argv[1]).Process):
        def __init__(self, total):
            super().__init__()
            self.total = total

        def run(self):
            self.total += 10

    if __name__ == "__main__":
        method = sys.argv[1]
        ctx = mp.get_context(method)
        tasks, results = ctx.Queue(), ctx.Queue()
        ours, theirs = ctx.Pipe()
        shared = core.zeros(5)
        weight = core.ones(3).as_subclass(Weight).requires_grad_()
        columns = mp.share_memory_(core.ones(6, 4)).t()
        mp.share_memory_(shared)
        process = ctx.Process(target=child, args=(tasks, results, shared, weight, theirs, columns))
        process.start()
        theirs.close()
        for i in range(3):
            tasks.put(core.full((100, 100), float(i)))
        assert [results.get()[0, 0].item() for _ in range(3)] == [0, 2, 4]
        word, copy, back = ours.recv()
        process.join()
        assert process.exitcode == 0
        assert shared.tolist() == copy.tolist() == [1] * 5
        assert back.tolist() == [1] * 3

        adder = Adder(shared)
        adder.start(); adder.join()
        assert shared.tolist() == [11] * 5

        with ctx.Pool(2) as pool:
            results = pool.map(core.neg, [core.full((3,), float(i)) for i in range(5)])
            assert [t.tolist() for t in results] == [[-i] * 3 for i in range(5)]
            assert sum(pool.apply_async(core.ones, ((4000,),)).get().tolist()) == 4000
        print("done")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method(run_script, method):
    assert run_script(SCRIPT, method) == "done\n"


def test_standard_queue_and_executor(run_script):
    # With the standard module's own queues, the receiver fetches a tensor's descriptor from the sender.
    run_script("""
        import concurrent.futures, multiprocessing
        import rushlight_core as core
        import rushlight_multiprocessing as mp

        def child(q, done):
            t = core.arange(2000.0)
            q.put(t)
            done.wait()
            assert t[0].item() == 5

        def double(t):
            return t * 2

        if __name__ == "__main__":
            standard = multiprocessing.get_context("fork")
            q, done = standard.Queue(), standard.Event()
            process = standard.Process(target=child, args=(q, done))
            process.start()
            t = q.get()
            t[0] = 5
            done.set()
            process.join()
            assert process.exitcode == 0
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=mp.get_context("fork")) as executor:
                assert sum(executor.submit(double, core.ones(3000)).result().tolist()) == 6000
    """)


def test_everything_standard_is_here():
    for name in multiprocessing.__all__:
        assert hasattr(mp, name), name
    assert set(multiprocessing.__all__) <= set(mp.__all__)


def test_start_method_is_that_of_the_standard_module():
    before = multiprocessing.get_start_method()
    try:
        mp.set_start_method("spawn", force=True)
        assert multiprocessing.get_start_method() == "spawn"
        assert mp.get_context() is mp.get_context("spawn")
        assert mp.get_context().get_start_method() == "spawn"
    finally:
        mp.set_start_method(before, force=True)
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("thread")
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("spawn").get_context("thread")


def test_processes_are_standard_processes():
    assert issubclass(mp.Process, multiprocessing.Process)
    assert issubclass(mp.get_context("fork").Process, multiprocessing.process.BaseProcess)
    process = mp.get_context("fork").Process(target=lambda: None)
    process.start()
    assert process in multiprocessing.active_children() or process.exitcode == 0
    process.join()


def test_import_is_light(run_script):
    out = run_script("""
        import sys
        import rushlight_core
        before = set(sys.modules)
        import rushlight_multiprocessing
        new = {name.split(".")[0] for name in set(sys.modules) - before}
        print(sorted(new & {"numpy", "asyncio", "http", "torch"}))
    """)
    assert out == "[]\n"


def test_module_functions_make_our_kinds():
    assert isinstance(mp.Queue(), type(mp.get_context("fork").Queue()))
    assert isinstance(mp.SimpleQueue(), type(mp.get_context("fork").SimpleQueue()))
    assert isinstance(mp.JoinableQueue(), type(mp.get_context("fork").JoinableQueue()))
    t = core.ones(3)
    with mp.Pool(1) as pool:
        assert pool.apply(core.neg, (t,)).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("name", ["connection", "context", "heap", "managers", "queues", "shared_memory"])
def test_submodules_are_the_standard_ones(name):
    assert getattr(mp, name) is importlib.import_module(f"multiprocessing.{name}")


def test_the_module_of_pools_has_the_names_of_the_standard_one():
    for name in vars(multiprocessing.pool):
        if name != "Pool" and not name.startswith("__"):
            assert getattr(mp.pool, name) is getattr(multiprocessing.pool, name)
    assert issubclass(mp.pool.Pool, multiprocessing.pool.Pool)
    with mp.Pool(1) as pool:
        assert type(pool) is mp.pool.Pool


@pytest.mark.parametrize("context", [None, "ours", "standard"])
def test_a_pool_made_from_its_class(context):
    if context:
        context = (mp if context == "ours" else multiprocessing).get_context("fork")
    with mp.pool.Pool(1, context=context) as pool:
        x = core.ones(3).share_memory_()
        pool.apply(x.fill_, (2.0,))
        assert x.tolist() == [2, 2, 2]


def test_unknown_names():
    with pytest.raises(AttributeError, match="nothing"):
        mp.nothing
