"""Operators that compute for long release the GIL, so that other threads run meanwhile."""

import ctypes
import itertools
import math
import os
import sys
import threading
import time

import pytest

import rushlight_core as rl

N = 1 << 17


def library():
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "/librushlight.so" in line)
    return ctypes.CDLL(path)


class CallerLocks(ctypes.Structure):
    _fields_ = [
        ("release", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_bool)),
        ("acquire", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


@pytest.fixture
def releases():
    """Replace the release of the GIL by a function that records its argument (whether the caller waits) in a list."""
    found = []
    types = dict(CallerLocks._fields_)
    table = CallerLocks(
        types["release"](lambda waits: found.append(waits)), types["acquire"](lambda held: None)
    )
    install = library()._ZN9rushlight16set_caller_locksEPKNS_11CallerLocksE
    install.restype, install.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    former = install(ctypes.addressof(table))
    yield found
    install(former)


def operators():
    """Return calls that take long, by name."""
    many = rl.randn(8 * N)
    x, m, wide = rl.randn(N), rl.randn(256, 256), rl.randn(N).to(rl.float64)
    index, images, weight = rl.randint(0, N, (N,)), rl.randn(2, 8, 56, 56), rl.randn(8, 8, 3, 3)
    definite, small, mask = m @ m.t() + 256 * rl.eye(256), rl.randn(96, 96), x > 0
    logits, row = rl.randn(100, 16, 20).log_softmax(2), x.sort()[0]
    lengths = [rl.full((16,), length) for length in (100, 30)]
    return {
        "add": lambda: x + x,
        "add_": lambda: x.add_(1),
        "add of two dtypes": lambda: x + wide,
        "add of strides": lambda: m.t() + m,
        "exp": lambda: x.exp(),
        "where": lambda: rl.where(mask, x, 0),
        "sum": lambda: many.sum(),
        "sum of columns": lambda: rl.randn(1024, 128).sum(0),
        "argmax": lambda: many.argmax(),
        "var": lambda: many.var(),
        "clone": lambda: x.clone(),
        "to": lambda: x.to(rl.float64),
        "contiguous": lambda: m.t().contiguous(),
        "cat": lambda: rl.cat([x, x]),
        "flip": lambda: x.flip(0),
        "fill_": lambda: x.fill_(1.0),
        "zeros": lambda: rl.zeros(N),
        "arange": lambda: rl.arange(N),
        "randn": lambda: rl.randn(N),
        "randperm": lambda: rl.randperm(N),
        "mm": lambda: m @ m,
        "mv": lambda: m @ m[0],
        "conv2d": lambda: rl.conv2d(images, weight),
        "max_pool2d": lambda: rl.max_pool2d(images, 2),
        "batch_norm": lambda: rl.batch_norm(images, None, None, None, None, True, 0.1, 1e-5, True),
        "softmax": lambda: m.softmax(0),
        "embedding": lambda: rl.embedding(m, index % 256),
        "sort": lambda: x.sort(),
        "topk": lambda: x.topk(10),
        "median": lambda: x.median(),
        "cumsum": lambda: x.cumsum(0),
        "unique": lambda: index.unique(),
        "nonzero": lambda: x.nonzero(),
        "masked_select": lambda: x[mask],
        "gather": lambda: x.gather(0, index),
        "scatter_add": lambda: x.scatter_add(0, index, x),
        "index": lambda: x[index],
        "index_put_": lambda: x.index_put_((index,), x.clone()),
        "searchsorted": lambda: rl.searchsorted(row, row),
        "bincount": lambda: index.bincount(),
        "inverse": lambda: rl.linalg.inv(definite),
        "cholesky": lambda: rl.linalg.cholesky(definite),
        "svd": lambda: rl.linalg.svd(small),
        "eig": lambda: rl.linalg.eig(small),
        "fft": lambda: rl.fft.fft(x),
        "fft of one sequence": lambda: rl.fft.fft(x[:10007]),
        "ctc_loss": lambda: rl.ctc_loss(logits, rl.randint(1, 20, (16, 30)), *lengths),
        "cdist": lambda: rl.cdist(m, m),
        "equal": lambda: rl.equal(x, x.clone()),
    }


@pytest.mark.parametrize("name", operators())
def test_long_operators_release_it(name, releases):
    call = operators()[name]
    releases.clear()
    call()
    assert releases
    assert not any(releases)


def test_short_operators_keep_it(releases):
    x, m = rl.randn(100), rl.randn(8, 8)
    releases.clear()
    (x + x).exp().sum()
    (m @ m).sort()
    rl.linalg.inv(m)
    rl.fft.fft(x)
    assert releases == []


@pytest.fixture
def beside():
    """Return a function that runs another function again and again in a thread."""
    over = threading.Event()
    threads = []

    def start(function):
        def run():
            while not over.is_set():
                function()

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


def test_other_threads_run_during_an_operator(beside):
    before, count = sys.getswitchinterval(), [0]
    m = rl.randn(400, 400)

    def work():
        count[0] += 1
        time.sleep(0)

    beside(work)
    while not count[0]:
        time.sleep(0.001)
    # From now on, threads switch only at calls that release the GIL.
    sys.setswitchinterval(1000)
    try:
        begin = time.perf_counter()
        while time.perf_counter() < begin + 10 * before:
            pass  # wait until switches that were requested at the former interval are over
        first = count[0]
        for _ in range(1000):
            m @ m
            if count[0] > first:
                break
        assert count[0] > first
    finally:
        sys.setswitchinterval(before)


def test_a_thread_that_waited_for_it_keeps_it_as_long(beside):
    """After a wait of 5 ms for the GIL, the next operator, which takes less than a millisecond, does not wait again.

    If the operator waits, it takes 5 ms. It may take more than 10 ms if this thread was suspended for so long that it no
    longer has to keep the GIL. Such cases are not counted.
    """
    count, x = [0], rl.randn(1 << 20)

    def work():
        for _ in range(100):
            count[0] += 1

    def waits():
        begin, before = time.perf_counter(), count[0]
        x + x
        return count[0] > before, time.perf_counter() - begin

    beside(work)
    again = []
    for _ in range(20000):
        if waits()[0]:
            waited, seconds = waits()
            again.append(waited and seconds < 0.009)
        if len(again) == 50:
            break
    assert len(again) == 50
    assert sum(again) < 5


def test_errors_of_kernels_that_released_it(beside):
    beside(lambda: time.sleep(0))
    x, index = rl.zeros(N), rl.full((N,), N)
    for _ in range(20):
        with pytest.raises(RuntimeError, match="out of range"):
            x.gather(0, index)
        with pytest.raises(rl.linalg.LinAlgError):
            rl.linalg.cholesky(-rl.eye(128))
    assert math.isclose(x.sum().item(), 0)


def test_threads_compute_what_one_computes():
    x = rl.arange(N, dtype=rl.float64)
    expected = ((x * 2).cumsum(0)[::7].sort(descending=True)[0] + 1).sum().item()
    found = []

    def run():
        for _ in range(20):
            found.append(((x * 2).cumsum(0)[::7].sort(descending=True)[0] + 1).sum().item())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 80


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="forks may find a sanitizer's locks taken"
)
def test_processes_forked_while_threads_compute(beside):
    """No lock is held in the child: neither ours nor LAPACK's, nor the locks under which oneDNN creates primitives."""
    sides = itertools.cycle(range(16, 96))

    def work(side):
        rl.conv2d(rl.randn(1, 16, side, 16), rl.randn(16, 16, 5, 5))
        rl.linalg.svd(rl.randn(48, 48))
        rl.randn(N).sort()

    work(8)
    for _ in range(3):
        beside(lambda: work(next(sides)))
    for side in range(100, 130):
        child = os.fork()
        if child == 0:
            try:
                work(side)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
