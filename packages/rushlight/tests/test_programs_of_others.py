"""Small versions of what libraries for PyTorch do: the names that they import, and the classes that they derive from."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import typing
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    flex_attention,
    or_masks,
)
from rushlight.utils import _pytree as pytree

IMPORTED = {
    "_C": ["_log_api_usage_once", "_get_tracing_state", "Graph", "Value"],
    "_dynamo": ["OptimizedModule", "config", "disable", "is_compiling", "mark_static_address"],
    "_dynamo.eval_frame": ["OptimizedModule"],
    "_dynamo.utils": ["is_compile_supported"],
    "_higher_order_ops.associative_scan": ["associative_scan"],
    "_subclasses.fake_tensor": ["FakeTensor", "is_fake"],
    "_tensor_str": ["PRINT_OPTS", "_tensor_str", "_add_suffixes"],
    "ao.quantization": [
        "DeQuantStub",
        "FakeQuantizeBase",
        "ObserverBase",
        "QuantStub",
        "disable_observer",
        "enable_fake_quant",
        "fuse_modules",
    ],
    "amp.autocast_mode": ["autocast", "custom_fwd"],
    "amp.grad_scaler": ["GradScaler"],
    "autograd.anomaly_mode": ["detect_anomaly", "set_detect_anomaly"],
    "autograd.grad_mode": ["enable_grad", "no_grad", "set_grad_enabled"],
    "autograd.profiler": ["EventList", "emit_nvtx", "profile", "record_function"],
    "autograd.variable": ["Variable"],
    "cuda": ["CUDAGraph", "Event", "FloatTensor", "Stream", "StreamContext", "graph", "stream"],
    "distributed": [
        "Backend",
        "GroupMember",
        "ProcessGroup",
        "ReduceOp",
        "Store",
        "all_reduce",
        "group",
        "get_rank",
    ],
    "distributed._composable.fsdp": ["fully_shard"],
    "distributed._functional_collectives": ["all_to_all_single_autograd", "wait_tensor"],
    "distributed.algorithms.join": ["Join"],
    "distributed.checkpoint": ["FileSystemReader", "load", "save"],
    "distributed.checkpoint.hf_storage": ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"],
    "distributed.checkpoint.state_dict": ["StateDictOptions", "get_model_state_dict"],
    "distributed.constants": ["default_pg_timeout"],
    "distributed.device_mesh": ["DeviceMesh", "init_device_mesh"],
    "distributed.fsdp": ["CPUOffloadPolicy", "FullyShardedDataParallel", "MixedPrecisionPolicy"],
    "distributed.nn": ["all_reduce"],
    "distributed.optim": ["ZeroRedundancyOptimizer"],
    "distributed.rpc": ["is_available"],
    "distributed.tensor": ["DTensor", "Partial", "Replicate", "Shard", "distribute_tensor"],
    "distributed.fsdp.fully_sharded_data_parallel": ["FullyShardedDataParallel", "MixedPrecision"],
    "distributed.tensor._utils": ["compute_local_shape_and_global_offset"],
    "distributed.tensor.placement_types": ["Shard", "_StridedShard"],
    "futures": ["Future", "collect_all"],
    "functional": ["einsum", "istft", "lu", "norm", "pca_lowrank", "stft", "tensordot", "unravel_index"],
    "fx": ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "symbolic_trace", "wrap"],
    "fx.experimental.proxy_tensor": ["get_proxy_mode"],
    "fx.node": ["Node"],
    "hub": ["HASH_REGEX", "download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"],
    "jit": [
        "Final",
        "ScriptModule",
        "TracerWarning",
        "_overload_method",
        "annotate",
        "ignore",
        "script",
        "trace",
    ],
    "jit.annotations": ["BroadcastingList2"],
    "nn.attention": ["SDPBackend", "sdpa_kernel"],
    "nn.init": ["_calculate_correct_fan", "_calculate_fan_in_and_fan_out", "_no_grad_trunc_normal_"],
    "nn.modules": ["CrossMapLRN2d", "SyncBatchNorm"],
    "nn.modules.adaptive": ["AdaptiveLogSoftmaxWithLoss"],
    "nn.modules.batchnorm": ["SyncBatchNorm", "_BatchNorm", "_NormBase"],
    "nn.modules.channelshuffle": ["ChannelShuffle"],
    "nn.modules.conv": ["Conv2d", "LazyConv2d", "_ConvNd"],
    "nn.modules.distance": ["CosineSimilarity", "PairwiseDistance"],
    "nn.modules.fold": ["Fold", "Unfold"],
    "nn.modules.instancenorm": ["_InstanceNorm"],
    "nn.modules.linear_cross_entropy_options": ["LinearCrossEntropyOptions"],
    "nn.modules.loss": ["LinearCrossEntropyLoss", "_Loss"],
    "nn.modules.module": [
        "_EXTRA_STATE_KEY_SUFFIX",
        "_IncompatibleKeys",
        "register_module_forward_hook",
        "register_module_full_backward_hook",
        "register_module_parameter_registration_hook",
    ],
    "nn.modules.padding": ["CircularPad1d", "ReflectionPad2d", "ZeroPad3d"],
    "nn.modules.pixelshuffle": ["PixelShuffle", "PixelUnshuffle"],
    "nn.modules.upsampling": ["Upsample", "UpsamplingNearest2d"],
    "nn.parallel": ["DataParallel", "DistributedDataParallel"],
    "nn.parallel.scatter_gather": ["scatter", "gather"],
    "nn.utils.clip_grad": ["clip_grad_norm_"],
    "nn.utils.init": ["skip_init"],
    "nn.utils.memory_format": ["convert_conv2d_weight_memory_format"],
    "nn.utils.fusion": ["fuse_conv_bn_eval"],
    "onnx": ["export", "is_in_onnx_export", "register_custom_op_symbolic"],
    "onnx.symbolic_helper": ["parse_args"],
    "optim.adam": ["Adam"],
    "optim.optimizer": ["Optimizer", "ParamsT", "register_optimizer_step_pre_hook", "required"],
    "overrides": ["TorchFunctionMode", "handle_torch_function", "has_torch_function"],
    "profiler.profiler": ["ProfilerAction", "profile", "schedule"],
    "quasirandom": ["SobolEngine"],
    "serialization": ["add_safe_globals", "safe_globals", "save"],
    "signal.windows.windows": ["bartlett", "kaiser"],
    "storage": ["TypedStorage", "UntypedStorage"],
    "torch_version": ["TorchVersion"],
    "utils.data.datapipes.iter.combinatorics": ["ShufflerIterDataPipe"],
    "utils._foreach_utils": ["_group_tensors_by_device_and_dtype"],
    "utils.checkpoint": ["get_device_states", "set_device_states"],
    "utils.cpp_extension": ["CUDA_HOME", "load"],
    "utils.data._utils.collate": ["default_collate", "default_collate_fn_map", "np_str_obj_array_pattern"],
    "utils.data.dataloader": ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter"],
    "utils.flop_counter": ["FlopCounterMode"],
    "utils.hooks": ["RemovableHandle"],
    "utils.model_zoo": ["load_url"],
}


@pytest.mark.parametrize("module", IMPORTED)
def test_what_libraries_import(module: str) -> None:
    found = importlib.import_module(f"rushlight.{module}")
    assert not [name for name in IMPORTED[module] if not hasattr(found, name)]
    reached: Any = torch
    for part in module.split("."):
        reached = getattr(reached, part)
    # As in PyTorch, a package may have a function with the same name as one of its modules.
    assert reached is found or reached is getattr(found, module.rpartition(".")[2])


REACHED = """
import sys
import rushlight as torch
for path in sys.argv[1:]:
    found = torch
    for name in path.split("."):
        found = getattr(found, name)
"""


def test_names_of_files_that_were_not_imported() -> None:
    # Programs write `torch.utils.data.distributed.DistributedSampler` after `import torch` alone.
    paths = [
        "amp.autocast_mode.autocast",
        "amp.grad_scaler.GradScaler",
        "autograd.function.Function",
        "distributed.algorithms",
        "distributed.constants",
        "nn.parameter.Parameter",
        "nn.utils.init.skip_init",
        "optim.adam.adam",
        "optim.adamw.adamw",
        "optim.optimizer.ParamsT",
        "optim.sgd.sgd",
        "signal.windows.windows.hann",
        "utils.data.dataloader.default_collate",
        "utils.data.distributed.DistributedSampler",
    ]
    subprocess.run([sys.executable, "-c", REACHED, *paths], check=True)


@pytest.mark.parametrize(
    "path",
    ["autograd.gradcheck", "multiprocessing.spawn", "nn.utils.spectral_norm", "nn.utils.weight_norm"],
)
def test_files_that_have_the_name_of_a_function(path: str) -> None:
    package, _, name = path.rpartition(".")
    found = importlib.import_module(f"rushlight.{path}")
    function = getattr(importlib.import_module(f"rushlight.{package}"), name)
    assert callable(function)
    assert getattr(found, name) is function


def test_questions_are_answered_and_orders_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    kinds = (
        torch.fx.GraphModule,
        torch.jit.ScriptModule,
        torch._dynamo.OptimizedModule,
        nn.parallel.DistributedDataParallel,
        torch.ao.quantization.ObserverBase,
        torch.distributed.fsdp.FullyShardedDataParallel,
    )
    assert not isinstance(model, kinds)
    assert not isinstance(torch.ones(1), (torch.distributed.tensor.DTensor, torch.cuda.FloatTensor))
    assert not isinstance(3, (torch.SymInt, torch.SymFloat, torch.SymBool))
    assert torch.ones(1).layout != torch.sparse_csr
    assert not torch.jit.is_scripting()
    assert not torch.jit.is_tracing()
    assert not torch.onnx.is_in_onnx_export()
    assert not torch.cuda.is_current_stream_capturing()
    assert model.apply(torch.ao.quantization.disable_observer) is model
    assert model.apply(torch.ao.quantization.enable_fake_quant) is model
    assert nn.parallel.distributed.DistributedDataParallel is nn.parallel.DistributedDataParallel
    refused: list[tuple[type[Exception], Any]] = [
        (NotImplementedError, lambda: torch.jit.save(model, "model.pt")),
        (FileNotFoundError, lambda: torch.jit.load("model.pt")),
        (NotImplementedError, lambda: torch.onnx.export(model, torch.ones(2), dynamo=False)),
        (NotImplementedError, lambda: torch.hub.load("owner/repository", "model")),
        (NotImplementedError, lambda: torch.ao.quantization.prepare(model)),
        (NotImplementedError, lambda: torch.utils.cpp_extension.load("name", [])),
        (NotImplementedError, lambda: torch.overrides.TorchFunctionMode().__enter__()),
        (NotImplementedError, lambda: torch.ones(2, layout=torch.sparse_coo)),
        (OSError, lambda: torch.ops.load_library("libother.so")),
        (RuntimeError, lambda: nn.parallel.DistributedDataParallel(model)),
        (ValueError, lambda: torch.distributed.init_process_group("nccl")),
        (RuntimeError, lambda: torch.distributed.nn.all_reduce(torch.ones(1))),
        (RuntimeError, lambda: torch.distributed.tensor.distribute_tensor(torch.ones(1))),
        (RuntimeError, lambda: torch.distributed.device_mesh.init_device_mesh("cpu", (1,))),
        (RuntimeError, lambda: torch.distributed.checkpoint.save({}, checkpoint_id="folder")),
        (TypeError, lambda: torch.ones(2, dtype=torch.complex32)),
    ]
    if not torch.cuda.is_available():
        refused += [(RuntimeError, torch.cuda.Stream), (RuntimeError, torch.cuda.current_stream)]
    for kind, order in refused:
        with pytest.raises(kind):
            order()


def test_placements_are_descriptions() -> None:
    """Libraries store placements in tables, but no tensor has a placement."""
    from rushlight.distributed import tensor

    shard, partial = tensor.Shard(1), tensor.Partial("avg")
    assert shard == tensor.Shard(dim=1) != tensor.Shard(0)
    assert (shard.is_shard(), shard.is_shard(1), shard.is_shard(0), shard.is_replicate()) == (
        True,
        True,
        False,
        False,
    )
    assert (partial.is_partial(), partial.is_partial("sum"), tensor.Partial().reduce_op) == (
        True,
        False,
        "sum",
    )
    assert tensor.Replicate().is_replicate()
    assert not tensor.Replicate().is_shard()
    assert len({tensor.Replicate(), tensor.Replicate(), shard}) == 2
    assert torch.distributed.ReduceOp.RedOpType.SUM is torch.distributed.ReduceOp.SUM
    torch.cpu.set_device(0)
    waited = torch.ones(1)
    assert torch.distributed._functional_collectives.wait_tensor(waited) is waited


def test_what_is_decorated_for_a_compiler_runs() -> None:
    @torch.jit.script
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    class Net(torch.jit.ScriptModule):
        __constants__ = ["n"]

        def __init__(self) -> None:
            super().__init__()
            self.n = 3
            self.layer = nn.Linear(3, 3)

        @torch.jit.script_method
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not torch.jit.is_scripting():
                x = torch.jit.annotate(torch.Tensor, self.unlike(x))
            return self.layer(x)

        @torch.jit.ignore
        def unlike(self, x: torch.Tensor) -> torch.Tensor:
            return scaled(x)

        @torch.jit.unused
        def never(self) -> None: ...

        @torch.jit.ignore(drop=True)
        def dropped(self) -> int:
            return 1

    net = Net()
    x = torch.ones(2, 3)
    assert torch.equal(net(x), net.layer(2 * x))
    assert torch.equal(torch.jit.trace(net, x)(x), net(x))
    assert torch.jit.freeze(torch.jit.script(net.eval())) is net
    assert torch.jit.wait(torch.jit.fork(scaled, x)).sum() == 12
    assert torch.jit.isinstance([1], list[int])
    assert net.dropped() == 1


def test_layers_that_compute_their_own_weight() -> None:
    class StandardizedConv(nn.Conv2d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
            return self._conv_forward(input, weight, self.bias)

    layer = StandardizedConv(2, 3, 3, padding=1, padding_mode="reflect")
    x = torch.randn(1, 2, 5, 5)
    weight = layer.weight - layer.weight.mean((1, 2, 3), keepdim=True)
    padded = nn.functional.pad(x, layer._reversed_padding_repeated_twice, "reflect")
    torch.testing.assert_close(layer(x), nn.functional.conv2d(padded, weight, layer.bias))
    assert not layer.transposed
    assert layer.output_padding == (0, 0)
    assert nn.ConvTranspose2d(2, 3, 3).transposed


def test_dropout_that_drops_nothing_writes_nothing() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    for layer in (nn.Dropout(0.0, inplace=True), nn.Dropout(0.5, inplace=True).eval()):
        layer(x.softmax(-1)).square().sum().backward()
    assert x.grad is not None


def test_hints_of_types_can_be_read() -> None:
    class Net(nn.Sequential):
        width: int = 3

    assert typing.get_type_hints(Net)["width"] is int
    for kind in (nn.Linear, nn.Conv2d, nn.BatchNorm2d, nn.MultiheadAttention, nn.LSTM, torch.optim.AdamW):
        typing.get_type_hints(kind)
        typing.get_type_hints(kind.__init__)
    typing.get_type_hints(nn.Module.to)


def test_batches_of_all_processes_are_this_ones() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Sequential(nn.InstanceNorm2d(2, affine=True))
    )
    weight = model[1].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert made is model
    assert isinstance(made[1], nn.SyncBatchNorm)
    assert isinstance(made[2][0], nn.InstanceNorm2d)  # not replaced, because it is not a batch normalisation
    assert made[1].weight is weight
    plain = nn.BatchNorm2d(2)
    x = torch.randn(3, 2, 4, 4)
    torch.testing.assert_close(made[1](x), plain(x))
    torch.testing.assert_close(made[1].running_var, plain.running_var)
    with pytest.raises(ValueError, match="dimensions"):
        nn.SyncBatchNorm(2)(torch.ones(2))


def test_trees_of_any_containers() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    class Point(typing.NamedTuple):
        x: Any
        y: Any

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    tree = {"p": Pair(1, [2, 3]), "q": Point(4, None), "r": (5, {"s": 6})}
    leaves, spec = pytree.tree_flatten(tree)
    assert pytree.arg_tree_leaves(1, [tree], last=(2,)) == [1, *leaves, 2]
    assert leaves == [1, 2, 3, 4, None, 5, 6]
    assert spec.num_leaves == 7
    made = pytree.tree_unflatten([str(leaf) for leaf in leaves], spec)
    assert (made["p"].a, made["p"].b, made["q"], made["r"]) == (
        "1",
        ["2", "3"],
        Point("4", "None"),
        ("5", {"s": "6"}),
    )
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": [2]}, {"b": [10], "a": 20}) == {
        "a": 21,
        "b": [12],
    }
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a", None]) == [-1, "a", None]
    assert pytree.tree_any(lambda x: x is None, tree)
    assert pytree.tree_structure([1, 2]) == pytree.tree_structure(["a", "b"]) != pytree.tree_structure([1])
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path({"a": [1, Point(2, 3)]})[0]]
    assert paths == ["['a'][0]", "['a'][1].x", "['a'][1].y"]
    with pytest.raises(ValueError, match="needs 7"):
        pytree.tree_unflatten([1], spec)
    with pytest.raises(ValueError, match="already"):
        pytree.register_pytree_node(Pair, lambda p: ([], None), lambda parts, _: None)
    with pytest.raises(ValueError, match="expected list, got"):
        pytree.tree_map(max, [1], (2,))


@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_scores_of_the_programs(masked: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 5, 8, requires_grad=True) for _ in range(3))
    slopes = torch.tensor([0.1, 0.2, 0.3, 0.4])
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 5, 5, BLOCK_SIZE=2) if masked else None
    result, aux = flex_attention(
        q,
        k,
        v,
        score_mod=lambda score, b, h, i, j: score + slopes[h] * (j - i),
        block_mask=mask,
        return_aux=AuxRequest(lse=True),
    )
    positions = torch.arange(5)
    bias = slopes[:, None, None] * (positions - positions[:, None])
    if masked:
        bias = bias.masked_fill(positions > positions[:, None], float("-inf"))
    expected = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    torch.testing.assert_close(result, expected)
    grads = torch.autograd.grad(result.square().sum(), (q, k, v), retain_graph=True)
    for grad, other in zip(grads, torch.autograd.grad(expected.square().sum(), (q, k, v)), strict=True):
        torch.testing.assert_close(grad, other)
    torch.testing.assert_close(aux.lse, (q @ k.mT / 8**0.5 + bias).logsumexp(-1))
    if mask is not None:
        torch.testing.assert_close(
            flex_attention(q, k, v, block_mask=mask),
            nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        )
        assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]


def test_masks_of_masks() -> None:
    window = and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i - j < 2)
    either = or_masks(window, lambda b, h, i, j: j == 0)
    mask = create_block_mask(either, 1, 1, 4, 4)
    assert mask._mask[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 1, 1]]
    x = torch.ones(1, 2, 4, 8)
    with pytest.raises(ValueError, match="heads"):
        flex_attention(x, x[:, :1], x[:, :1])
    assert flex_attention(x, x[:, :1], x[:, :1], enable_gqa=True).shape == x.shape
    blind = create_block_mask(lambda b, h, i, j: i > 100, 1, 1, 4, 4)
    assert flex_attention(x, x, x, block_mask=blind).abs().sum() == 0
    with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):
        pass
    with pytest.raises(TypeError, match="SDPBackend"), torch.nn.attention.sdpa_kernel("math"):  # type: ignore[list-item]
        pass


def test_results_that_come_later() -> None:
    first: torch.futures.Future[int] = torch.futures.Future()
    second = first.then(lambda done: done.wait() + 1)
    both = torch.futures.collect_all([first, second])
    assert not both.done()
    first.set_result(1)
    assert (second.wait(), both.wait()[1].wait()) == (2, 2)
    assert torch.futures.wait_all([first, second]) == [1, 2]
    with pytest.raises(RuntimeError, match="already"):
        first.set_result(2)
    failed = first.then(lambda done: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.wait()


def test_operators_by_their_inner_names() -> None:
    aten = torch.ops.aten
    x = torch.ones(2)
    assert aten.add.Tensor(x, x).tolist() == [2.0, 2.0]
    assert aten.add.Tensor is aten.add.Tensor
    assert aten.add.Tensor is not aten.add.Scalar
    assert "aten.add" in repr(aten.add.Tensor)
    with pytest.raises(NotImplementedError, match="_no_such"):
        aten._no_such.default(x)


def test_shapes_of_an_operator_that_is_not_there_yet() -> None:
    torch.library.register_fake("programs::doubled", lambda x: torch.empty_like(x))
    with pytest.raises(AttributeError, match="programs::doubled"):
        torch.ops.programs.doubled
    doubled = torch.library.custom_op("programs::doubled", lambda x: 2 * x, mutates_args=())
    assert doubled(torch.ones(3, device="meta")).shape == (3,)
    assert doubled(torch.ones(1)).item() == 2.0
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet("CPU")
    with torch._C._ExcludeDispatchKeyGuard(keys):
        pass


def test_points_that_fill_a_cube() -> None:
    engine = torch.quasirandom.SobolEngine
    with pytest.raises(ValueError, match="21201"):
        engine(0)
    if importlib.util.find_spec("scipy") is None:
        with pytest.raises(ImportError, match="SciPy"):
            engine(2)
        return
    points = engine(3).draw(4)
    assert points.tolist() == [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    later = engine(3).fast_forward(2)
    assert torch.equal(later.draw(2), points[2:])
    assert torch.equal(later.reset().draw_base2(2), points)
    assert engine(2, scramble=True, seed=3).draw(8).unique().numel() == 16
    with pytest.raises(ValueError, match="would not be balanced"):
        later.draw(1)
        later.draw_base2(1)


def test_a_file_from_a_folder_of_what_was_fetched(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert torch.hub.get_dir() == str(tmp_path / "hub")
    weights = tmp_path / "weights.pt"
    torch.save({"w": torch.ones(2)}, weights)
    assert torch.hub.load_state_dict_from_url(weights.as_uri())["w"].tolist() == [1.0, 1.0]
    assert (tmp_path / "hub" / "checkpoints" / "weights.pt").exists()
    with pytest.raises(RuntimeError, match="SHA-256"):
        torch.hub.download_url_to_file(weights.as_uri(), str(tmp_path / "copy"), hash_prefix="00000000")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hub", "weights.pt"]


@pytest.mark.parametrize("length", [2, 3, 4, 7, 8])
def test_running_results_of_an_associative_function(length: int) -> None:
    from rushlight._higher_order_ops.associative_scan import associative_scan

    torch.manual_seed(0)
    gates, inputs = torch.rand(2, length, 3, requires_grad=True), torch.randn(2, length, 3)

    def combine(left: Any, right: Any) -> Any:
        return {"a": left["a"] * right["a"], "b": right["a"] * left["b"] + right["b"]}

    found = associative_scan(combine, {"a": gates, "b": inputs}, dim=1)["b"]
    state, states = torch.zeros(2, 3), []
    for i in range(length):
        state = gates[:, i] * state + inputs[:, i]
        states.append(state)
    expected = torch.stack(states, 1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), gates), torch.autograd.grad(expected.square().sum(), gates)
    )
    sums = associative_scan(torch.add, torch.arange(length), 0, reverse=True)
    assert sums.tolist() == [sum(range(i, length)) for i in range(length)]
    with pytest.raises(ValueError, match="tensors of the same size in dimension"):
        associative_scan(combine, {"a": gates, "b": inputs[:, :0]}, dim=1)
