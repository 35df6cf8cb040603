"""Devices, memory, streams and events of the plug-in, with a driver whose streams advance only when the host waits."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

import rushlight as torch

ILLEGAL_ADDRESS = 700  # CUDA's error number


def test_work_is_queued_and_nothing_waits(driver):
    x = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    y = (x * 2 + 1).sum()
    assert driver.fake_cuda_waiting() >= 3
    assert y.item() == 3000
    assert driver.fake_cuda_waiting() == 0


def test_a_stream_advances_as_far_as_it_is_told(driver):
    torch.cuda.synchronize()
    x = torch.zeros(10, device="cuda")
    first, second = torch.cuda.Event(), torch.cuda.Event()
    x += 1
    first.record()
    x += 1
    second.record()
    driver.fake_cuda_advance(0, 3)  # zeros, the sum, the mark
    assert first.query()
    assert not second.query()
    second.synchronize()
    assert second.query()
    assert x.tolist() == [2.0] * 10


def test_an_event_that_is_not_reached_leaves_no_error(driver):
    """CUDA would report the error at the next launch, even at a launch of another library."""
    torch.cuda.synchronize()
    torch.ones(10, device="cuda").add_(1)
    event = torch.cuda.Event()
    event.record()
    assert not event.query()
    assert driver.fake_cuda_last_error() == 0
    side = torch.cuda.Stream()
    x = torch.ones(1 << 12, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x + 1
        x.record_stream(side)
    del x
    torch.ones(1 << 12, device="cuda")  # the allocator queries whether `side` has finished
    assert driver.fake_cuda_last_error() == 0


@pytest.mark.parametrize("lost", [(1, 0), (0, 1)])
def test_memory_whose_use_cannot_be_marked_is_not_reused_early(driver, lost):
    side = torch.cuda.Stream()
    x = torch.ones(1 << 12, device="cuda")
    address = x.data_ptr()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x + 1
        x.record_stream(side)
    driver.fake_cuda_lose_events(*lost)
    try:
        del x
        again = torch.zeros(1 << 12, device="cuda")
    finally:
        driver.fake_cuda_lose_events(0, 0)
    assert again.data_ptr() == address
    driver.fake_cuda_advance(0, 1000)  # the default stream runs before `side`
    assert y.tolist() == [2.0] * (1 << 12)


def test_streams_are_ordered_by_events(driver):
    side = torch.cuda.Stream()
    x = torch.ones(64, device="cuda")
    y = x * 3
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side != torch.cuda.default_stream()
        z = y + 1
    torch.cuda.current_stream().wait_stream(side)
    assert (z * 2).tolist() == [8.0] * 64


def test_time_between_events(driver):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.ones(10, device="cuda").add_(1)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_streams_by_their_addresses(driver):
    side = torch.cuda.Stream()
    assert type(torch.cuda.current_stream()) is type(torch.cuda.default_stream()) is torch.cuda.Stream
    same = torch.cuda.ExternalStream(side.cuda_stream)
    assert same == side
    try:
        torch.cuda.set_stream(same)
        assert torch.cuda.current_stream() == side
        assert (torch.ones(2, device="cuda") + 1).tolist() == [2.0, 2.0]
    finally:
        torch.cuda.set_stream(torch.cuda.default_stream())
    assert torch.cuda.default_generators == (torch.default_generator,)


def test_events_for_threads_that_sleep(driver):
    before = driver.fake_cuda_sleeping_events()
    torch.cuda.Event().record()
    assert driver.fake_cuda_sleeping_events() == before
    torch.cuda.Event(blocking=True).record()
    assert driver.fake_cuda_sleeping_events() == before + 1


def test_dlpack_orders_streams_and_waits_for_nothing(driver):
    class Producer:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, **given):
            seen.append(given["stream"])
            with torch.cuda.stream(torch.cuda.default_stream()):  # the producer's stream
                return x.__dlpack__(**given)

    seen = []
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    x = torch.ones(8, device="cuda") + 1
    with torch.cuda.stream(side):
        y = torch.from_dlpack(Producer()) * 2
        assert driver.fake_cuda_waiting() >= 3
        assert y.tolist() == [4.0] * 8
    assert torch.from_dlpack(Producer()).tolist() == [2.0] * 8
    assert seen == [side.stream_id, 1]


def test_dlpack_of_an_unknown_device(driver):
    capsule = torch.ones(2, device="cuda").__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # DLTensor begins with the address of the data and the type of the device, which the index follows.
    ctypes.c_int32.from_address(pointer_of(capsule, b"dltensor") + 12).value = 256
    with pytest.raises(BufferError, match="there is no device 256 of type cuda"):
        torch.from_dlpack(capsule)


def test_pinned_memory_is_copied_while_the_host_goes_on(driver):
    torch.cuda.synchronize()
    host = torch.arange(100.0).pin_memory()
    device = host.to("cuda", non_blocking=True)
    assert driver.fake_cuda_waiting() > 0
    back = torch.empty(100).pin_memory()
    back.copy_(device, non_blocking=True)
    torch.cuda.synchronize()
    assert back.equal(host)
    plain = torch.arange(10.0)
    copied = plain.cuda()
    plain.zero_()
    assert copied.tolist() == list(range(10))


def test_memory_is_cached_after_the_first_iteration(driver):
    def iteration():
        x = torch.ones(1 << 16, device="cuda")
        for _ in range(5):
            x = x * 2 + 1
        return x.sum().item()

    iteration()
    before = driver.fake_cuda_allocations()
    for _ in range(5):
        iteration()
    assert driver.fake_cuda_allocations() == before
    kept = torch.ones(100, device="cuda")
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated() >= kept.nbytes
    assert torch.cuda.memory_stats()["num_ooms"] >= 0
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
    torch.cuda.empty_cache()


def test_out_of_memory_says_what_is_held(driver):
    kept = torch.empty(8 << 20, device="cuda")
    with pytest.raises(torch.OutOfMemoryError, match=r"32.0 MiB \(.*test_runtime.py"):
        torch.empty(1 << 30, device="cuda")
    assert kept.numel() == 8 << 20


def test_an_ordinal_out_of_range(driver):
    with pytest.raises(RuntimeError, match="cuda:5: the index is out of range, because this machine has 1"):
        torch.ones(1, device="cuda:5")


def run(plugin, program: str, **environment: str) -> str:
    head = f"import rushlight as torch, rushlight_core as core\nplugin = {str(plugin)!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    return done.stdout + done.stderr


LOAD = """
try:
    core.devices.load_backend(plugin)
    print("attached")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"FAKE_CUDA_MISSING": "this machine has no NVIDIA driver"},
            "cuda: probing the machine failed: this machine has no NVIDIA",
        ),
        ({"FAKE_CUDA_DEVICES": "0"}, "CUDA finds no device: no CUDA-capable device is detected"),
        (
            {"FAKE_CUDA_CAPABILITY": "75"},
            "cuda:0 has compute capability 7.5, and this package is built for 9.0 and newer",
        ),
    ],
)
def test_a_machine_that_cannot_be_served(plugin, environment, message):
    assert message in run(plugin, LOAD, **environment)


def test_a_late_failure_names_what_was_queued(plugin):
    program = f"""
import ctypes
core.devices.load_backend(plugin)
x = torch.ones(10, device="cuda")
torch.cuda.synchronize()
ctypes.CDLL(plugin).fake_cuda_fail({ILLEGAL_ADDRESS})
y = x * 2
for use in (y.tolist, y.tolist, lambda: torch.empty(8 << 20, device="cuda"), lambda: torch.ones(3).pin_memory(),
            lambda: y.view(1, 10) @ y.view(10, 1)):
    try:
        use()
    except RuntimeError as error:
        print(type(error).__name__, error)
"""
    text = run(plugin, program)
    assert text.count("an illegal memory access was encountered (CUDA error 700)") == 5, text
    assert "OutOfMemoryError" not in text, text
    assert "the last operators queued, newest first: mul at <string>:9" in text, text
    assert "cannot use the device any more" in text, text


def test_a_late_failure_names_each_operator_once(plugin):
    """A batch norm queues several kernels."""
    program = f"""
import ctypes
core.devices.load_backend(plugin)
x = torch.ones(4, 3, 5, device="cuda")
torch.cuda.synchronize()
ctypes.CDLL(plugin).fake_cuda_fail({ILLEGAL_ADDRESS})
y = x * 2
z = y + 1
for _ in range(8):
    z = z.sub(1)
y = torch.nn.functional.batch_norm(z, None, None, training=True)
try:
    y.tolist()
except RuntimeError as error:
    print(error)
"""
    text = run(plugin, program)
    named = text.split("newest first: ")[1].split("\n")[0].split(", ")
    assert [name.split(" at ")[0] for name in named][-3:] == ["sub", "add", "mul"], text


def test_several_devices(plugin):
    program = """
core.devices.load_backend(plugin)
x = torch.arange(5.0, device="cuda:1")
y = x.to("cuda:0")
print(torch.cuda.device_count(), y.device, (y + 1).tolist(), (x * 2).device)
try:
    x + y
except RuntimeError as error:
    print(error)
"""
    text = run(plugin, program, FAKE_CUDA_DEVICES="2")
    assert "2 cuda:0 [1.0, 2.0, 3.0, 4.0, 5.0] cuda:1" in text, text
    assert "all tensors must be on one device" in text, text


def test_another_library_may_change_the_current_device(plugin):
    program = """
import ctypes
core.devices.load_backend(plugin)
library = ctypes.CDLL(plugin)
x = torch.ones(4, device="cuda:0")
torch.cuda.synchronize()
library.fake_cuda_set_device(1)
y = x + 1
done = torch.cuda.Event()
done.record()
library.fake_cuda_advance(0, 1000)
print(done.query(), y.tolist())
"""
    text = run(plugin, program, FAKE_CUDA_DEVICES="2")
    assert "True [2.0, 2.0, 2.0, 2.0]" in text, text


def test_devices_that_are_not_used_get_no_context(plugin):
    program = """
import ctypes
core.devices.load_backend(plugin)
library = ctypes.CDLL(plugin)
print(torch.cuda.is_available(), torch.cuda.device_count(), library.fake_cuda_contexts())
x = torch.ones(4, device="cuda:1").index_select(0, torch.tensor([1], device="cuda:1"))
print(x.tolist(), library.fake_cuda_contexts())
"""
    text = run(plugin, program, FAKE_CUDA_DEVICES="2")
    assert "True 2 0\n[1.0] 2" in text, text


def test_pinning_creates_no_context_on_another_device(plugin):
    program = """
import ctypes, threading
core.devices.load_backend(plugin)
library = ctypes.CDLL(plugin)
def contexts(function):
    thread = threading.Thread(target=function)  # CUDA's current device of a new thread is device 0
    thread.start()
    thread.join()
    print(library.fake_cuda_contexts())
def pin():
    torch.ones(3).pin_memory()
def pin_for_2():
    with torch.cuda.device(2):
        pin()
if chosen:
    contexts(pin_for_2)
x = torch.ones(4, device="cuda:2")
contexts(pin)
contexts(pin_for_2)
"""
    head = "chosen = {}\n"
    assert run(plugin, head.format(True) + program, FAKE_CUDA_DEVICES="3") == "4\n4\n4\n"
    assert run(plugin, head.format(False) + program, FAKE_CUDA_DEVICES="3") == "4\n4\n"


def test_a_forked_process_is_refused(plugin):
    program = """
import os
core.devices.load_backend(plugin)
x = torch.ones(3, device="cuda")
torch.cuda._devices._driver_is_there = lambda: True
pid = os.fork()
if pid == 0:
    for call in (lambda: x + 1, torch.cuda.synchronize):
        try:
            call()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""
    text = run(plugin, program)
    assert text.count("a forked process cannot use the devices of its parent") == 2, text


def test_a_graph_does_its_work_again(driver):
    x, w = torch.ones(8, device="cuda"), torch.full((8,), 3.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = (x * w).relu() + 1
        drawn = torch.rand(8, device="cuda")
    assert not torch.cuda.is_current_stream_capturing()
    launches = driver.fake_cuda_launches()
    seen = []
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        assert y.tolist() == [value * 3 + 1] * 8
        seen.append(drawn.tolist())
    assert seen[0] != seen[1]
    assert driver.fake_cuda_launches() - launches == 2  # the two fills
    with (
        pytest.raises(RuntimeError, match="copying between host and device"),
        torch.cuda.graph(torch.cuda.CUDAGraph()),
    ):
        y.sum().item()
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other, pool=graph.pool()):
        z = x * 5
    assert other.pool() == graph.pool()
    other.replay()
    assert z.tolist() == [10.0] * 8


def test_memory_that_is_released_during_a_capture(driver):
    side = torch.cuda.Stream()
    x = torch.ones(1000, device="cuda")
    pinned = torch.ones(1000).pin_memory()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = x + pinned.to("cuda", non_blocking=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        z = y * 2
        del x, pinned  # `side` has used them before the capture
        del z
        z = y * 3
        more = torch.ones(1000).pin_memory()
    graph.replay()
    torch.cuda.synchronize()
    assert z.tolist() == [6.0] * 1000
    del more


def test_a_replay_waits_for_nothing(driver):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        drawn = torch.rand(8, device="cuda")
    torch.cuda.synchronize()
    graph.replay()
    assert driver.fake_cuda_waiting() > 0
    first = drawn.tolist()
    assert torch.rand(8, device="cuda").tolist() != first


@pytest.mark.parametrize(
    "seed", [lambda: torch.manual_seed(3), torch.seed, lambda: torch.set_rng_state(other_state())]
)
def test_the_generator_cannot_be_seeded_during_a_capture(driver, seed):
    torch.manual_seed(5)
    torch.rand(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        drawn = torch.rand(8, device="cuda")
        with pytest.raises(RuntimeError, match="cannot be seeded while a graph is being recorded"):
            seed()
        torch.Generator().manual_seed(3)
    graph.replay()
    found = drawn.tolist()
    torch.manual_seed(5)
    torch.rand(3, device="cuda")
    torch.rand(8, device="cuda")  # for the capture
    assert found == torch.rand(8, device="cuda").tolist()


def other_state() -> torch.Tensor:
    return torch.Generator().manual_seed(9).get_state()


def test_a_state_of_the_capture_can_be_restored(driver):
    """Checkpointing restores a state to draw the same numbers again. The next replay draws other numbers."""
    torch.manual_seed(5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        state = torch.get_rng_state()
        first, later = torch.rand(8, device="cuda"), torch.rand(8, device="cuda")
        torch.set_rng_state(state)
        again = torch.rand(8, device="cuda")
    seen = []
    for _ in range(2):
        graph.replay()
        assert first.tolist() == again.tolist()
        seen += [first.tolist(), later.tolist()]
    assert len({tuple(numbers) for numbers in seen}) == 4


def test_what_the_device_is_made_of(driver):
    found = torch.cuda.get_device_properties(0)
    assert found.name == torch.cuda.get_device_name() == "Device in host memory"
    assert torch.cuda.get_device_capability() == (found.major, found.minor) == (9, 0)
    assert found.multi_processor_count == 2
    assert found.warp_size == 32
    assert str(found.uuid).endswith("01")


def test_free_memory_and_a_part_of_it(driver):
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total == int(os.environ.get("FAKE_CUDA_MEMORY_MIB", "256")) << 20
    x = torch.ones(1 << 22, device="cuda")
    assert torch.cuda.mem_get_info()[0] < free
    assert "allocated" in torch.cuda.memory_summary()
    assert any(block["state"] == "live" for s in torch.cuda.memory_snapshot() for block in s["blocks"])
    torch.cuda.set_per_process_memory_fraction(0.25)
    try:
        assert torch.cuda.get_per_process_memory_fraction() == 0.25
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"the limit is 64\.0 MiB"):
            torch.empty(80 << 20, dtype=torch.uint8, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.get_per_process_memory_fraction() == 1.0
    for wrong, error in ((1.5, ValueError), (-0.1, ValueError), (1, TypeError)):
        with pytest.raises(error, match="fraction"):
            torch.cuda.set_per_process_memory_fraction(wrong)
    del x


def test_streams_and_events_have_handles_and_priorities(driver):
    assert torch.cuda.Stream.priority_range() == (0, -5)
    urgent = torch.cuda.Stream(priority=-100)
    assert urgent.priority == -5
    assert torch.cuda.Stream(priority=3).priority == 0
    with urgent:
        assert torch.cuda.current_stream() == urgent
        assert torch.cuda.current_stream().priority == -5
        x = torch.ones(3, device="cuda")
    assert urgent.cuda_stream == urgent.native_handle == urgent._as_parameter_.value != 0
    assert urgent.__cuda_stream__() == (0, urgent.cuda_stream)
    assert urgent.device_index == 0
    assert not urgent.is_capturing()
    event = torch.cuda.Event()
    assert event.cuda_event == event.event_id == 0
    event.record(urgent)
    assert event.cuda_event == event._as_parameter_.value != 0
    with pytest.raises(NotImplementedError, match="between processes"):
        event.ipc_handle()
    with pytest.raises(NotImplementedError, match="between processes"):
        torch.cuda.Event.from_ipc_handle("cuda", b"")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="nothing has been recorded"):
        graph.raw_cuda_graph_exec()
    torch.cuda.current_stream().wait_stream(urgent)
    with torch.cuda.graph(graph):
        assert torch.cuda.current_stream().is_capturing()
        y = x + 1
    assert graph.raw_cuda_graph_exec() != 0
    graph.replay()
    assert y.tolist() == [2, 2, 2]
    for call in (graph.raw_cuda_graph, graph.enable_debug_mode, lambda: graph.debug_dump("graph.dot")):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(RuntimeError, match="has instantiated"):
        graph.instantiate()


def test_tf32_is_asked_for(driver):
    """The plug-in reads the TF32 setting for each product."""
    assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32
    x = torch.randn(8, 8, device="cuda")
    try:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
        x @ x
        assert driver.fake_cuda_last_product_tf32() == 1
        torch.set_float32_matmul_precision("highest")
        assert not torch.backends.cuda.matmul.allow_tf32
        x @ x
        assert driver.fake_cuda_last_product_tf32() == 0
        image = torch.randn(1, 2, 4, 4, device="cuda")
        torch.backends.cudnn.enabled = False  # the plug-in's own kernels use products
        torch.nn.functional.conv2d(image, torch.randn(3, 2, 3, 3, device="cuda"))
        assert driver.fake_cuda_last_product_tf32() == 1
        torch.backends.cudnn.allow_tf32 = False
        torch.nn.functional.conv2d(image, torch.randn(3, 2, 3, 3, device="cuda"))
        assert driver.fake_cuda_last_product_tf32() == 0
    finally:
        torch.backends.cudnn.enabled = True
        torch.backends.cudnn.allow_tf32 = True
        torch.set_float32_matmul_precision("highest")


def test_fp32_precision_is_asked_for(driver):
    """The precision of an operator is its own choice, that of the module above it, or that of all backends."""
    backends = torch.backends
    backends.cudnn.enabled = False  # the driver records only products
    x, image, weight = (torch.randn(*shape, device="cuda") for shape in ((8, 8), (1, 2, 4, 4), (3, 2, 3, 3)))
    gates = torch.nn.LSTM(3, 4, device="cuda")

    def seen():
        found = []
        for call in (
            lambda: x @ x,
            lambda: torch.nn.functional.conv2d(image, weight),
            lambda: gates(torch.randn(64, 1, 3, device="cuda")),
        ):
            call()
            found.append(driver.fake_cuda_last_product_tf32())
        return found

    try:
        assert seen() == [0, 1, 1]
        backends.cuda.matmul.fp32_precision = "tf32"
        assert torch.get_float32_matmul_precision() == "high"
        backends.cudnn.conv.fp32_precision = "ieee"
        assert seen() == [1, 0, 1]
        backends.cudnn.rnn.fp32_precision = "none"
        assert backends.cudnn.rnn.fp32_precision == "none"
        assert seen() == [1, 0, 0]
        backends.fp32_precision = "tf32"
        assert backends.cudnn.rnn.fp32_precision == "tf32"
        backends.cuda.matmul.fp32_precision = "none"
        assert seen() == [1, 0, 1]
        backends.cudnn.fp32_precision = "ieee"
        assert backends.cuda.matmul.fp32_precision == "ieee"
        assert seen() == [0, 0, 0]
        assert torch.get_float32_matmul_precision() == "highest"
        backends.fp32_precision = backends.cudnn.fp32_precision = "none"
        backends.cudnn.allow_tf32 = False
        backends.cudnn.allow_tf32 = True
        torch.set_float32_matmul_precision("highest")
        assert seen() == [0, 1, 1]
    finally:
        backends.fp32_precision = backends.cudnn.fp32_precision = "none"
        backends.cudnn.allow_tf32 = True
        backends.cudnn.enabled = True
        torch.set_float32_matmul_precision("highest")


def test_half_products_add_as_is_asked_for(driver):
    products = torch.backends.cuda.matmul
    x = torch.full((1, 4096), 1.0, dtype=torch.float16, device="cuda")
    try:
        assert (x @ x.t()).item() == 4096
        assert driver.fake_cuda_last_product_half_sums() == 0
        products.allow_fp16_accumulation = True
        assert (x @ x.t()).item() == 2048  # 2049 is not a float16
        assert driver.fake_cuda_last_product_half_sums() == 1
        assert (x.bfloat16() @ x.bfloat16().t()).item() == 4096
        assert (
            torch.addmm(torch.ones(1, 1, device="cuda").half(), x[:, :8], x.t()[:8], beta=2, alpha=3).item()
            == 26
        )
        products.allow_fp16_accumulation = False
        x @ x.t()
        assert driver.fake_cuda_last_product_schemes() == 2
        products.allow_fp16_reduced_precision_reduction = False, False
        assert not products.allow_fp16_reduced_precision_reduction_split_k
        x @ x.t()
        assert driver.fake_cuda_last_product_schemes() == 0
        x.bfloat16() @ x.bfloat16().t()
        assert driver.fake_cuda_last_product_schemes() == 2
    finally:
        products.allow_fp16_accumulation = False
        products.allow_fp16_reduced_precision_reduction = True
