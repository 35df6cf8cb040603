"""Functions for features that do not exist here or have no switches. They return, so that programs run."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight_core as core
from rushlight import as_torch, nn
from rushlight.cuda import amp as cuda_amp

no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


def test_switches_of_backends() -> None:
    cudnn = torch.backends.cudnn
    cudnn.benchmark = True
    assert cudnn.benchmark
    with cudnn.flags(enabled=False, deterministic=True):
        assert (cudnn.enabled, cudnn.deterministic, cudnn.benchmark) == (False, True, False)
    assert (cudnn.enabled, cudnn.deterministic, cudnn.benchmark) == (True, False, True)
    cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    assert cudnn.is_available() == torch.cuda.is_available()
    assert not torch.backends.mps.is_available()
    assert not torch.backends.mkl.is_available()
    assert torch.backends.openmp.is_available()
    for name in ("enabled", "benchmark", "deterministic", "allow_tf32"):
        with pytest.raises(TypeError, match=rf"backends\.cudnn\.{name}: must be a bool, not int"):
            setattr(cudnn, name, 1)
    with pytest.raises(TypeError, match="benchmark_limit: must be an int, not bool"):
        cudnn.benchmark_limit = True
    with pytest.raises(ValueError, match="benchmark_limit: must be from 0 to"):
        cudnn.benchmark_limit = -1
    assert (cudnn.enabled, cudnn.benchmark, cudnn.benchmark_limit) == (True, False, 10)


def test_devices_read_the_switches_of_convolutions() -> None:
    """Setting a switch returns its former value, so core has the values that the module shows."""
    with torch.backends.cudnn.flags(enabled=False, benchmark=True, benchmark_limit=3, deterministic=True):
        for name, value in (
            ("library_convolutions", 0),
            ("timed_convolutions", 1),
            ("timed_candidates", 3),
            ("deterministic_convolutions", 1),
        ):
            assert core._C._set_setting(name, value) == value
    assert core._C._set_setting("library_convolutions", 1) == 1
    torch.use_deterministic_algorithms(True)
    assert core._C._set_setting("deterministic_algorithms", 1) == 1
    torch.set_deterministic_debug_mode("default")
    assert core._C._set_setting("deterministic_algorithms", 0) == 0
    with pytest.raises(ValueError, match="unknown setting"):
        core._C._set_setting("unknown", 1)


def test_precisions_of_backends() -> None:
    backends = torch.backends
    backends.cuda.matmul.fp32_precision = "none"
    assert (backends.fp32_precision, backends.cuda.matmul.fp32_precision) == ("none", "none")
    assert (backends.cudnn.conv.fp32_precision, backends.cudnn.allow_tf32) == ("tf32", True)
    with backends.cudnn.flags(enabled=True, allow_tf32=False, fp32_precision="ieee"):
        assert not backends.cudnn.allow_tf32
        assert backends.cudnn.rnn.fp32_precision == backends.cuda.matmul.fp32_precision == "ieee"
    assert (backends.cudnn.rnn.fp32_precision, backends.cuda.matmul.fp32_precision) == ("tf32", "none")
    for module in (backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv):
        with pytest.raises(RuntimeError, match="must be 'ieee', 'tf32', 'bf16' or 'none', got 'x'"):
            module.fp32_precision = "x"
        with pytest.raises(TypeError, match="must be a str, not bool"):
            module.fp32_precision = True
        if module is not backends:
            with pytest.raises(RuntimeError, match="CUDA does not support 'bf16'"):
                module.fp32_precision = "bf16"
    products = backends.cuda.matmul
    for wrong in (1, (), (True, 1), (True, True, True)):
        with pytest.raises(TypeError, match="must be one or two bools"):
            products.allow_bf16_reduced_precision_reduction = wrong
    with pytest.raises(TypeError, match="allow_fp16_accumulation: must be a bool, not int"):
        products.allow_fp16_accumulation = 1
    with pytest.raises(AttributeError):
        products.allow_fp64 = True


def in_a_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import rushlight as torch\n{code}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_asking_for_a_gpu_imports_little() -> None:
    """The import of these modules would take longer than the search for a GPU."""
    code = "import sys\nbefore = set(sys.modules)\ntorch.cuda.is_available()\nprint(*(set(sys.modules) - before))"
    assert not {"typing", "re", "ctypes", "importlib.metadata"} & set(in_a_process(code).split())


def test_what_computes_on_the_cpu_is_told() -> None:
    code = "print(torch.backends.cpu.get_cpu_capability(), torch.backends.mkldnn.is_available())"
    told = torch.backends.cpu.get_cpu_capability()
    assert told in ("AVX512", "AVX2")
    found = torch.backends.mkldnn.is_available()
    assert in_a_process(code) == f"{told} {found}"
    assert in_a_process(code, RUSHLIGHT_COMPUTE="plain") == f"{told} False"
    chosen = {"RUSHLIGHT_CPU_CAPABILITY": told.lower()}
    assert in_a_process(code, **chosen) == f"{told} {found}"


def test_minimal_filtering_can_be_switched_off() -> None:
    cpu = torch.backends.cpu
    x, w = torch.randn(4, 32, 24, 24), torch.randn(32, 32, 3, 3)
    assert cpu.winograd
    fast = torch.conv2d(x, w)
    cpu.winograd = False
    try:
        assert not cpu.winograd
        direct = torch.conv2d(x, w)
    finally:
        cpu.winograd = True
    assert not torch.equal(fast, direct)
    assert (fast - direct).abs().max() <= 2e-5 * direct.abs().max()
    with pytest.raises(TypeError, match=r"cpu\.winograd: must be a bool"):
        cpu.winograd = 1  # type: ignore[assignment]


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="built without oneDNN")
def test_onednn_can_be_switched_off() -> None:
    code = (
        "x, w = torch.ones(1, 8, 16, 16), torch.ones(8, 8, 3, 3)\n"
        "{switch}\n"
        "torch.conv2d(x, w)\n"
        "print('librushlight_dnnl' in open('/proc/self/maps').read())"
    )
    assert in_a_process(code.format(switch="")) == "True"
    assert in_a_process(code.format(switch="torch.backends.mkldnn.enabled = False")) == "False"
    mkldnn = torch.backends.mkldnn
    x, w = torch.randn(1, 4, 8, 8), torch.randn(4, 4, 3, 3)
    with mkldnn.flags(enabled=False):
        assert not mkldnn.enabled
        plain = torch.conv2d(x, w)
    assert mkldnn.enabled
    assert torch.allclose(torch.conv2d(x, w), plain, atol=1e-4)
    with pytest.raises(TypeError, match=r"mkldnn\.enabled: must be a bool"):
        mkldnn.enabled = 1  # type: ignore[assignment]


def kernels_of_attention(**arguments: Any) -> set[str]:
    q = torch.randn(1, 2, 4, 8)
    with torch.profiler.profile() as profile:
        torch.nn.functional.scaled_dot_product_attention(q, q, q, **arguments)
    return {event.name for event in profile.events()} & {"_attention", "softmax"}


def test_the_choice_of_attention_is_told_and_kept() -> None:
    cuda, backend = torch.backends.cuda, torch.nn.attention.SDPBackend
    fused, composed = {"_attention"}, {"softmax"}
    assert kernels_of_attention() == fused
    for name in ("flash", "mem_efficient", "math", "cudnn"):
        told, switch = getattr(cuda, f"{name}_sdp_enabled"), getattr(cuda, f"enable_{name}_sdp")
        assert told()
        switch(False)
        assert not told()
        switch(True)
        assert told()
    with torch.nn.attention.sdpa_kernel(backend.MATH):
        assert (cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()) == (False, True)
        assert kernels_of_attention() == composed
    with torch.nn.attention.sdpa_kernel([backend.MATH, backend.FLASH_ATTENTION]):
        assert kernels_of_attention() == fused
    with torch.nn.attention.sdpa_kernel([backend.MATH, backend.FLASH_ATTENTION], set_priority=True):
        assert kernels_of_attention() == composed
    with torch.nn.attention.sdpa_kernel(backend.EFFICIENT_ATTENTION):
        assert kernels_of_attention() == fused
        assert kernels_of_attention(dropout_p=0.5) == fused
        several = torch.randn(2, 1, 2, 4, 8)
        with pytest.raises(RuntimeError, match="no kernel that is enabled"):
            torch.nn.functional.scaled_dot_product_attention(several, several, several)
    with (
        torch.nn.attention.sdpa_kernel(backend.CUDNN_ATTENTION),
        pytest.raises(RuntimeError, match="no kernel"),
    ):
        kernels_of_attention()
    with cuda.sdp_kernel(enable_flash=False, enable_mem_efficient=False):
        assert kernels_of_attention() == composed
    assert kernels_of_attention() == fused
    q = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    attention = torch.nn.functional.scaled_dot_product_attention
    with torch.nn.attention.sdpa_kernel(backend.MATH):
        composed_result = attention(q, q, q, is_causal=True)
    assert torch.allclose(attention(q, q, q, is_causal=True), composed_result)


def test_spawn_is_the_function_whatever_is_imported() -> None:
    code = (
        "import rushlight.multiprocessing.spawn\n"
        "from rushlight.multiprocessing.spawn import ProcessRaisedException as one\n"
        "mp = torch.multiprocessing\n"
        "print(callable(mp.spawn), one is mp.ProcessRaisedException)"
    )
    assert in_a_process(code) == "True True"


def test_pools_are_imported_from_their_module() -> None:
    code = (
        "from rushlight.multiprocessing.pool import Pool, ThreadPool, AsyncResult\n"
        "mp = torch.multiprocessing\n"
        "with Pool(1, context=mp.get_context('fork')) as pool:\n"
        "    x = torch.ones(2).share_memory_()\n"
        "    pool.apply(x.fill_, (2,))\n"
        "print(x.tolist(), mp.pool.Pool is Pool)"
    )
    assert in_a_process(code) == "[2.0, 2.0] True"


def test_a_module_is_imported_under_one_name() -> None:
    # With the path of the wrapped package, its submodules would be imported a second time.
    for module in pkgutil.walk_packages(torch.__path__, "rushlight."):
        found = importlib.import_module(module.name)
        assert ("/rushlight/" in str(found.__path__)) if hasattr(found, "__path__") else not module.ispkg
    assert not as_torch.is_installed()  # as_torch._program installs the replacement only as the main program


@no_gpu
def test_questions_about_gpus_have_answers_and_orders_raise() -> None:
    cuda = torch.cuda
    assert (cuda.device_count(), cuda.is_initialized(), cuda.is_bf16_supported()) == (0, False, False)
    assert not cuda.is_tf32_supported()
    assert cuda.memory_allocated() == cuda.max_memory_allocated() == cuda.memory_reserved() == 0
    cuda.empty_cache()
    cuda.ipc_collect()
    cuda.reset_peak_memory_stats()
    cuda.manual_seed_all(1)
    assert cuda.initial_seed() == torch.initial_seed()
    assert cuda.memory_stats_as_nested_dict() == {}
    cuda.set_device(-1)
    with cuda.device_of(torch.ones(1)):
        pass
    with cuda.device(None):
        pass
    orders: list[Any] = [
        cuda.synchronize,
        cuda.current_device,
        cuda.init,
        cuda.get_device_name,
        cuda.get_rng_state,
        lambda: cuda.set_device(0),
    ]
    for order in orders:
        with pytest.raises(RuntimeError, match=r"no GPU is available.*\nhint"):
            order()


def test_other_devices_are_no_gpus() -> None:
    with pytest.raises(ValueError, match="must be a GPU, such as 'cuda:0', got device 'cpu'"):
        torch.cuda.set_device("cpu")


def test_statistics_of_memory_as_nested_dicts(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = {"num_ooms": 0, "active_bytes.all.peak": 3, "active_bytes.all.current": 2}
    monkeypatch.setattr(torch.cuda.memory, "memory_stats", lambda _: flat)
    nested = {"num_ooms": 0, "active_bytes": {"all": {"peak": 3, "current": 2}}}
    assert torch.cuda.memory.memory_stats_as_nested_dict() == nested


def test_the_cause_is_reported_if_gpus_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("cuda: the driver is too old")

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda._devices, "_driver_is_there", lambda: True)
    monkeypatch.setattr(core._C, "_device_count", lambda _: 0)
    monkeypatch.setattr(core.devices, "find_backend", fails)
    monkeypatch.setattr(core, "empty", fails)
    with pytest.warns(UserWarning, match="no GPU can be used: cuda: the driver is too old"):
        assert not torch.cuda.is_available()
    with pytest.raises(
        RuntimeError, match=r"synchronize\(\): no GPU is available: cuda: the driver is too old"
    ):
        torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.cuda.device_count() == 0
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert not torch.cuda.is_available()


@no_gpu
def test_mixed_precision_for_gpus_does_nothing_without_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = cuda_amp.GradScaler()
        with cuda_amp.autocast():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    assert not scaler.is_enabled()
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler.scale(layer(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_compiled_programs_run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.compile(nn.Linear(2, 2))
        model.compile(fullgraph=True)
    assert list(model.state_dict()) == ["weight", "bias"]
    assert not torch.compiler.is_compiling()

    @torch.compiler.disable
    def function() -> int:
        return 3

    assert function() == 3


def test_training_in_bfloat16() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3), nn.LayerNorm(3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    x, y = torch.randn(12, 1, 8, 8), torch.arange(12) % 3
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(x)
            loss = nn.functional.cross_entropy(output, y)
        assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in model.parameters())
    assert losses[-1] < 0.5 * losses[0]


def test_a_weight_is_converted_once_and_its_gradient_is_whole() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        with torch.no_grad():
            w @ w  # this conversion has no graph, and must not be reused by calls that need one
        z = (w @ w @ w).sum()
    z.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [[12.0, 12.0], [12.0, 12.0]]
    # A weight that changes within a block is converted again.
    with torch.autocast("cpu"):
        before = (w @ w).sum().item()
        with torch.no_grad():
            w.mul_(2)
        assert (w @ w).sum().item() == 4 * before


def test_bilinear_is_computed_in_the_widest_dtype_of_its_arguments() -> None:
    layer, first, second = nn.Bilinear(3, 4, 5), torch.randn(2, 3), torch.randn(2, 4)
    full = layer(first, second)
    rounded = layer(first.bfloat16().float(), second)
    with torch.autocast("cpu"):
        assert torch.equal(layer(first, second), full)
        assert torch.equal(layer(first.bfloat16(), second), rounded)
        small = nn.functional.bilinear(*(t.bfloat16() for t in (first, second, layer.weight)))
    assert full.dtype == torch.float32
    assert small.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "MultiheadAttention"])
def test_layers_of_several_products(kind: str) -> None:
    if kind == "MultiheadAttention":
        layer: Any = nn.MultiheadAttention(4, 2)
        x = torch.randn(3, 1, 4)
        arguments: tuple[Any, ...] = (x, x, x)
    else:
        layer, arguments = getattr(nn, kind)(4, 4), (torch.randn(3, 4),)
    with torch.autocast("cpu"):
        result = layer(*arguments)
    full = layer(*arguments)
    result, full = (r[0] if isinstance(r, tuple) else r for r in (result, full))
    assert result.dtype == torch.bfloat16
    np.testing.assert_allclose(result.float().detach().numpy(), full.detach().numpy(), atol=0.05)
    result.sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in layer.parameters())


def test_functions_with_a_gradient_of_their_own() -> None:
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append(torch.is_autocast_enabled("cpu"))
            return grad @ b.mT, a.mT @ grad

    a = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(a, a)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    Product.apply(a, a).sum().backward()
    assert seen == [True, False]


def test_functions_at_the_root_that_another_package_makes() -> None:
    x, w, b = torch.randn(6, 2, 3), torch.randn(2, 3, 4), torch.randn(4)
    result = torch.conv_tbc(x, w, b, 1)
    assert result.shape == (7, 2, 4)
    padded = nn.functional.pad(x, (0, 0, 0, 0, 1, 1))
    expected = padded[:-1] @ w[0] + padded[1:] @ w[1] + b
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)
    with pytest.raises(RuntimeError, match="conv_tbc"):
        torch.conv_tbc(x[0], w, b)
    assert (
        torch.bilinear(torch.ones(2, 3), torch.ones(2, 4), torch.ones(5, 3, 4)).tolist() == [[12.0] * 5] * 2
    )


def test_names_by_the_files_that_pytorch_has_them_in() -> None:
    from rushlight.nn.modules.batchnorm import _BatchNorm
    from rushlight.nn.modules.conv import _ConvNd
    from rushlight.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present
    from rushlight.optim.lr_scheduler import _LRScheduler
    from rushlight.utils.data.dataset import TensorDataset

    assert isinstance(nn.BatchNorm2d(3), _BatchNorm)
    assert isinstance(nn.ConvTranspose2d(3, 3, 1), _ConvNd)
    assert nn.modules.module.Module is nn.Module
    assert (_pair(3), _pair([1, 2])) == ((3, 3), (1, 2))
    assert _LRScheduler is torch.optim.lr_scheduler.LRScheduler
    assert TensorDataset is torch.utils.data.TensorDataset
    state = nn.DataParallel(nn.Linear(2, 2)).state_dict()
    consume_prefix_in_state_dict_if_present(state, "module.")
    nn.Linear(2, 2).load_state_dict(state)


def test_devices_that_there_are_not() -> None:
    assert not torch.mps.is_available()
    assert not torch.xpu.is_available()
    assert torch.cpu.is_available()
    assert torch.accelerator.is_available() == torch.cuda.is_available()
    assert (torch.accelerator.current_accelerator() is None) != torch.cuda.is_available()
    assert torch.distributed.is_available()
    assert not torch.distributed.is_initialized()
    with pytest.raises(ValueError, match="nccl is not available; must be 'shm'"):
        torch.distributed.init_process_group("nccl")
    with pytest.raises(AttributeError, match=r"no_such_name.*\nhint"):
        torch.distributed.no_such_name
    assert torch.version.cuda is None


def test_variables_are_tensors() -> None:
    variable = torch.autograd.Variable(torch.ones(2), requires_grad=True)
    assert type(variable) is torch.Tensor
    assert variable.requires_grad
    assert isinstance(torch.ones(1), torch.autograd.Variable)
    with pytest.raises(TypeError, match="list"):
        torch.autograd.Variable([1.0])


def test_nonzero_says_what_it_returns() -> None:
    x = torch.tensor([[0, 2], [3, 0]])
    assert torch.nonzero(x, as_tuple=False).tolist() == x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert x.nonzero(as_tuple=False).tolist() == [[0, 1], [1, 0]]
    for columns in (torch.nonzero(x, as_tuple=True), x.nonzero(as_tuple=True)):
        assert [c.tolist() for c in columns] == [[0, 1], [1, 0]]
    out = torch.empty(0, dtype=torch.int64)
    torch.nonzero(x, out=out)
    assert out.tolist() == [[0, 1], [1, 0]]
    assert torch.ones(2).type(torch.LongTensor).dtype == torch.int64
    assert torch.ones(2).to(torch.cfloat).dtype == torch.complex64


def test_levels_of_forward_mode_without_a_block() -> None:
    forward_ad = torch.autograd.forward_ad
    level = forward_ad.enter_dual_level()
    try:
        dual = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        assert forward_ad.unpack_dual(dual * dual).tangent.item() == 6.0
    finally:
        forward_ad.exit_dual_level(level=level)
    with pytest.raises(RuntimeError, match="not the innermost of the 0 open levels"):
        forward_ad.exit_dual_level()


def test_what_is_accepted_around_checkpoints() -> None:
    from rushlight.utils import checkpoint

    assert checkpoint.DefaultDeviceType.get_device_type() == "cuda"
    with checkpoint.set_checkpoint_debug_enabled(True):
        x = torch.ones(2, requires_grad=True)
        checkpoint.checkpoint(torch.exp, x, use_reentrant=False).sum().backward()
    assert x.grad is not None
    state = torch.get_rng_state()
    drawn = torch.rand(2)
    checkpoint.set_device_states([0], [state])
    assert torch.equal(torch.rand(2), drawn)
    assert torch.get_device_module("cpu") is torch.cpu


def test_calling_with_other_parameters_by_its_older_name() -> None:
    from rushlight.nn.utils.stateless import functional_call

    layer = nn.Linear(2, 1, bias=False)
    assert functional_call(layer, {"weight": torch.ones(1, 2)}, (torch.ones(1, 2),)).tolist() == [[2.0]]


def test_functional_optimizers_refuse_parameters_with_a_history() -> None:
    leaf = torch.ones(2, requires_grad=True)
    computed = leaf * 2
    settings = {
        "weight_decay": 0.5,
        "momentum": 0,
        "lr": 0.1,
        "dampening": 0,
        "nesterov": False,
        "maximize": False,
    }
    with pytest.raises(NotImplementedError, match=r"sgd.*with a grad_fn cannot be updated"):
        torch.optim.sgd.sgd([computed], [torch.ones(2)], [None], **settings)
    assert computed.tolist() == [2.0, 2.0]
    with torch.no_grad():
        torch.optim.sgd.sgd([computed, leaf], [torch.ones(2)] * 2, [None] * 2, **settings)
    torch.testing.assert_close(computed.detach(), torch.tensor([1.8, 1.8]))


def test_one_hot_vectors_inside_vmap() -> None:
    classes = torch.tensor([[0, 2], [1, 2]])

    def vectors(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.one_hot(x, 4)

    assert torch.equal(torch.vmap(vectors)(classes), vectors(classes))
    assert torch.equal(torch.vmap(torch.vmap(vectors))(classes), vectors(classes))
    assert torch.vmap(vectors)(torch.tensor([4, -1])).tolist() == [[0] * 4] * 2
    with pytest.raises(RuntimeError, match=r"one_hot\(num_classes\): got -1 inside vmap"):
        torch.vmap(nn.functional.one_hot)(classes)


@pytest.mark.parametrize("create_graph", [False, True])
def test_zero_grad_keeps_the_tensor(create_graph: bool) -> None:
    layer = nn.Linear(2, 1)
    for owner in (layer, torch.optim.SGD(layer.parameters(), lr=0.1)):
        layer.zero_grad()
        (layer(torch.ones(1, 2)) ** 2).sum().backward(create_graph=create_graph)
        grads = [p.grad for p in layer.parameters()]
        owner.zero_grad(set_to_none=False)
        for p, grad in zip(layer.parameters(), grads, strict=True):
            assert p.grad is grad
            assert not grad.requires_grad
            assert not grad.any()


def test_backward_inside_autocast_of_a_forward_outside() -> None:
    w, x = torch.rand(3, 3, requires_grad=True), torch.rand(2, 3)
    wanted = (x.sum(0)[:, None]).expand(3, 3)
    y = (x @ w).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = torch.autograd.grad(y, w, retain_graph=True)
        y.backward()
    for gradient in (found, w.grad):
        assert gradient.dtype == torch.float32
        assert torch.allclose(gradient, wanted, rtol=0.02)


def test_names_that_programs_for_any_machine_read() -> None:
    assert (torch.version.cuda, torch.version.hip, torch.version.rocm, torch.version.xpu) == (None,) * 4
    warnings.filterwarnings("ignore", category=torch.serialization.SourceChangeWarning)
