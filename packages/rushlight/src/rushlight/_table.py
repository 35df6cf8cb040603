"""A table of the modules that re-export names of other packages under PyTorch's paths.

`rushlight._Finder` looks up modules in this table, and the build writes stubs for them. The entry of a module maps each
original module to the names that are re-exported from it, separated by spaces. `name:alias` re-exports a name under another
name, and `*` re-exports all names of the original module, including names that are loaded on first use.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing takes longer to import than this module
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

MODULES: dict[str, dict[str, str]] = {
    "__future__": {"rushlight_nn.conversion": "*"},
    "_higher_order_ops.cond": {"rushlight_core._control_flow": "cond"},
    "_higher_order_ops.scan": {"rushlight_core._control_flow": "scan"},
    "_higher_order_ops.while_loop": {"rushlight_core._control_flow": "while_loop"},
    "_tensor": {"rushlight_core": "Tensor"},
    "_vmap_internals": {"rushlight_autograd.batching": "vmap vmap:_vmap"},
    "_weights_only_unpickler": {
        "rushlight_nn.serialization": (
            "add_safe_globals:_add_safe_globals clear_safe_globals:_clear_safe_globals "
            "get_safe_globals:_get_safe_globals safe_globals:_safe_globals"
        ),
    },
    "amp.autocast_mode": {"rushlight_core.amp": "autocast custom_bwd custom_fwd is_autocast_available"},
    "amp.grad_scaler": {"rushlight_core.amp": "GradScaler"},
    "array_api": {"rushlight_core.array_api": "*"},
    "autograd.anomaly_mode": {"rushlight_autograd": "detect_anomaly set_detect_anomaly"},
    "autograd.forward_ad": {"rushlight_autograd.forward_ad": "*"},
    "autograd.function": {"rushlight_autograd.function": "Function FunctionCtx once_differentiable"},
    "autograd.functional": {"rushlight_autograd.functional": "*"},
    "autograd.grad_mode": {
        "rushlight_autograd": "set_multithreading_enabled",
        "rushlight_core": "enable_grad inference_mode no_grad set_grad_enabled",
    },
    "autograd.graph": {"rushlight_autograd.graph": "*"},
    "autograd.variable": {"rushlight_autograd.variable": "Variable"},
    "backends.mha": {
        "rushlight_nn.layers.transformer": "get_fastpath_enabled set_fastpath_enabled",
    },
    "distributed._composable.fsdp": {"rushlight.distributed.fsdp": "*"},
    "distributed._functional_collectives": {
        "rushlight.distributed._absent": "all_to_all_single_autograd wait_tensor"
    },
    "distributed.algorithms.join": {"rushlight_nn.layers.join": "*"},
    "distributed.checkpoint.hf_storage": {
        "rushlight.distributed.checkpoint": "HuggingFaceStorageReader HuggingFaceStorageWriter"
    },
    "distributed.checkpoint.state_dict": {
        "rushlight.distributed.checkpoint": (
            "StateDictOptions get_model_state_dict get_optimizer_state_dict set_model_state_dict "
            "set_optimizer_state_dict"
        ),
    },
    "distributed.constants": {
        "rushlight_multiprocessing.distributed.group": "DEFAULT_TIMEOUT:default_pg_timeout"
    },
    "distributed.distributed_c10d": {"rushlight.distributed": "*"},
    "distributed.fsdp.fully_sharded_data_parallel": {
        "rushlight.distributed.fsdp": "CPUOffload FullyShardedDataParallel MixedPrecision",
    },
    "distributed.tensor._utils": {"rushlight.distributed.tensor": "compute_local_shape_and_global_offset"},
    "distributed.tensor.placement_types": {
        "rushlight.distributed.tensor": "Partial Placement Replicate Shard _StridedShard"
    },
    "distributions.multivariate_normal": {
        "rushlight_nn.distributions.multivariate_normal": (
            "* Distribution _batch_mahalanobis _batch_mv _precision_to_scale_tril"
        ),
    },
    "distributions.studentT": {"rushlight_nn.distributions.student_t": "*"},
    "distributions.utils": {"rushlight_nn.distributions.utils": "* _standard_normal _sum_rightmost"},
    "export": {"rushlight_graph": "Dim ExportedProgram Graph export load register_dataclass save"},
    "fft": {"rushlight_core.fft": "*"},
    "func": {
        "rushlight_autograd.batching": "debug_unwrap slow_path_taken vmap warn_of_slow_path",
        "rushlight_autograd.jacobians": "hessian jacfwd jacrev",
        "rushlight_autograd.transforms": "grad grad_and_value jvp linearize vjp",
        "rushlight_nn.utils.stateless": "functional_call replace_all_batch_norm_modules_ stack_module_state",
    },
    "functional": {
        "rushlight_core": (
            "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
            "cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot "
            "unique unique_consecutive unravel_index"
        ),
    },
    "futures": {"rushlight_core.futures": "Future collect_all wait_all"},
    "jit._script": {
        "rushlight.jit": "ScriptFunction ScriptModule ScriptModule:RecursiveScriptModule script script_method"
    },
    "library": {"rushlight_autograd.library": "*"},
    "linalg": {"rushlight_core.linalg": "*"},
    "masked": {"rushlight_core.masked": "*"},
    "multiprocessing.pool": {"rushlight_multiprocessing.pool": "*"},
    "multiprocessing.queue": {"rushlight_multiprocessing.queue": "Queue SimpleQueue"},
    "multiprocessing.reductions": {"rushlight_multiprocessing.reductions": "init_reductions reduce_tensor"},
    "multiprocessing.spawn": {
        "rushlight_multiprocessing.spawn": (
            "ProcessContext ProcessException ProcessExitedException ProcessRaisedException SpawnContext "
            "spawn start_processes"
        ),
    },
    "nn.functional": {"rushlight_nn.functional": "*"},
    "nn.init": {"rushlight_nn.init": "*"},
    "nn.modules.activation": {
        "rushlight_nn.layers.activation": (
            "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax "
            "Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink "
            "Softsign Tanh Tanhshrink Threshold"
        ),
        "rushlight_nn.layers.attention": "MultiheadAttention",
    },
    "nn.modules.adaptive": {"rushlight_nn": "AdaptiveLogSoftmaxWithLoss"},
    "nn.modules.batchnorm": {
        "rushlight_nn.layers.lazy": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
        "rushlight_nn.layers.norm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm _BatchNorm _NormBase",
    },
    "nn.modules.channelshuffle": {"rushlight_nn": "ChannelShuffle"},
    "nn.modules.container": {
        "rushlight_nn.layers.container": "ModuleDict ModuleList Sequential",
        "rushlight_nn.layers.parameter_container": "ParameterDict ParameterList",
    },
    "nn.modules.conv": {
        "rushlight_nn": (
            "LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d"
        ),
        "rushlight_nn.layers.conv": "Conv1d Conv2d Conv3d _Convolution:_ConvNd",
        "rushlight_nn.layers.conv_transpose": "ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    },
    "nn.modules.distance": {"rushlight_nn": "CosineSimilarity PairwiseDistance"},
    "nn.modules.dropout": {
        "rushlight_nn.layers.dropout": (
            "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout"
        ),
    },
    "nn.modules.flatten": {"rushlight_nn": "Flatten Unflatten"},
    "nn.modules.fold": {"rushlight_nn": "Fold Unfold"},
    "nn.modules.instancenorm": {
        "rushlight_nn.layers.instance_norm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d _InstanceNorm",
        "rushlight_nn.layers.lazy": "LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d",
    },
    "nn.modules.lazy": {"rushlight_nn.lazy": "LazyModuleMixin"},
    "nn.modules.linear": {
        "rushlight_nn.layers.lazy": "LazyLinear",
        "rushlight_nn.layers.linear": "Bilinear Identity Linear NonDynamicallyQuantizableLinear",
    },
    "nn.modules.linear_cross_entropy_options": {"rushlight_nn": "LinearCrossEntropyOptions"},
    "nn.modules.loss": {
        "rushlight_nn.layers.linear_cross_entropy": "LinearCrossEntropyLoss",
        "rushlight_nn.layers.loss": (
            "BCELoss BCEWithLogitsLoss CTCLoss CrossEntropyLoss HuberLoss KLDivLoss L1Loss MSELoss NLLLoss "
            "SmoothL1Loss _Loss _WeightedLoss"
        ),
        "rushlight_nn.layers.margin_loss": (
            "CosineEmbeddingLoss GaussianNLLLoss HingeEmbeddingLoss MarginRankingLoss MultiLabelMarginLoss "
            "MultiLabelSoftMarginLoss MultiMarginLoss PoissonNLLLoss SoftMarginLoss TripletMarginLoss "
            "TripletMarginWithDistanceLoss"
        ),
    },
    "nn.modules.padding": {
        "rushlight_nn": (
            "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
            "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
            "ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d"
        ),
    },
    "nn.modules.pixelshuffle": {"rushlight_nn": "PixelShuffle PixelUnshuffle"},
    "nn.modules.pooling": {
        "rushlight_nn.layers.fractional": "FractionalMaxPool2d FractionalMaxPool3d",
        "rushlight_nn.layers.pooling": (
            "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
            "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d MaxPool1d MaxPool2d MaxPool3d"
        ),
        "rushlight_nn.layers.unpooling": "LPPool1d LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
    },
    "nn.modules.rnn": {
        "rushlight_nn.layers.recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    },
    "nn.modules.sparse": {"rushlight_nn.layers.embedding": "Embedding EmbeddingBag"},
    "nn.modules.transformer": {
        "rushlight_nn.layers.transformer": (
            "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
            "TransformerEncoderLayer"
        ),
    },
    "nn.modules.upsampling": {"rushlight_nn": "Upsample UpsamplingBilinear2d UpsamplingNearest2d"},
    "nn.parallel.distributed": {"rushlight_nn.layers.distributed": "DistributedDataParallel"},
    "nn.parameter": {"rushlight_nn.parameter": "*"},
    "nn.utils.clip_grad": {
        "rushlight_nn.utils.clip_grad": (
            "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm"
        ),
    },
    "nn.utils.convert_parameters": {
        "rushlight_nn.utils.convert_parameters": "parameters_to_vector vector_to_parameters",
    },
    "nn.utils.fusion": {
        "rushlight_nn.utils.fusion": (
            "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights"
        ),
    },
    "nn.utils.init": {"rushlight_nn.utils": "skip_init"},
    "nn.utils.memory_format": {
        "rushlight_nn.utils": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
    },
    "nn.utils.parametrizations": {"rushlight_nn.utils.parametrizations": "*"},
    "nn.utils.parametrize": {"rushlight_nn.utils.parametrize": "*"},
    "nn.utils.prune": {"rushlight_nn.utils.prune": "*"},
    "nn.utils.rnn": {"rushlight_nn.utils.rnn": "*"},
    "nn.utils.spectral_norm": {"rushlight_nn.utils": "remove_spectral_norm spectral_norm"},
    "nn.utils.stateless": {"rushlight_nn.utils.stateless": "functional_call"},
    "nn.utils.weight_norm": {"rushlight_nn.utils": "remove_weight_norm weight_norm"},
    "optim._functional": {"rushlight_nn.optim.functional": "*"},
    "optim.adadelta": {"rushlight_nn.optim.adadelta": "Adadelta adadelta"},
    "optim.adafactor": {"rushlight_nn.optim": "Adafactor"},
    "optim.adagrad": {"rushlight_nn.optim.adagrad": "Adagrad adagrad"},
    "optim.adam": {"rushlight_nn.optim.adam": "Adam adam"},
    "optim.adamax": {"rushlight_nn.optim.adamax": "Adamax adamax"},
    "optim.adamw": {"rushlight_nn.optim.adam": "AdamW adamw"},
    "optim.asgd": {"rushlight_nn.optim.asgd": "ASGD asgd"},
    "optim.lbfgs": {"rushlight_nn.optim": "LBFGS"},
    "optim.lr_scheduler": {"rushlight_nn.optim.lr_scheduler": "*"},
    "optim.nadam": {"rushlight_nn.optim.nadam": "NAdam nadam"},
    "optim.radam": {"rushlight_nn.optim.radam": "RAdam radam"},
    "optim.rmsprop": {"rushlight_nn.optim.rmsprop": "RMSprop rmsprop"},
    "optim.rprop": {"rushlight_nn.optim.rprop": "Rprop rprop"},
    "optim.sgd": {"rushlight_nn.optim.sgd": "SGD sgd"},
    "optim.sparse_adam": {"rushlight_nn.optim": "SparseAdam"},
    "optim.swa_utils": {"rushlight_nn.optim.swa_utils": "*"},
    "profiler.profiler": {
        "rushlight_profiler": (
            "ProfilerAction profile schedule supported_activities tensorboard_trace_handler"
        ),
    },
    "quantization": {"rushlight.ao.quantization": "*"},
    "random": {
        "rushlight_core": (
            "default_generator fork_rng get_rng_state initial_seed manual_seed seed set_rng_state"
        ),
        "rushlight_core._random": "get_stream stream",
        "rushlight_data.random_streams": "thread_safe_generator",
    },
    "signal.windows.windows": {
        "rushlight_core.signal.windows": (
            "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann "
            "kaiser nuttall"
        ),
    },
    "sparse": {"rushlight_core.sparse": "*"},
    "special": {"rushlight_core.special": "*"},
    "storage": {"rushlight_core": "TypedStorage UntypedStorage"},
    "utils._pytree": {
        "rushlight_core.pytree": (
            "Context GetAttrKey KeyPath LeafSpec MappingKey NodeDef PyTree SUPPORTED_NODES SequenceKey "
            "TreeSpec arg_tree_leaves _defaultdict_flatten _defaultdict_unflatten _deque_flatten _deque_unflatten "
            "_dict_flatten _dict_flatten_with_keys _dict_unflatten _get_node_type _is_leaf "
            "_is_namedtuple_instance _list_flatten _list_flatten_with_keys _list_unflatten "
            "_namedtuple_flatten _namedtuple_unflatten _ordereddict_unflatten _register_pytree_node "
            "_tuple_flatten _tuple_unflatten keystr map_only register_dataclass register_pytree_node tree_all tree_all_only "
            "tree_any tree_any_only tree_flatten tree_flatten_with_path tree_iter tree_leaves tree_map "
            "tree_map_ tree_map_only tree_map_only_ tree_map_with_path tree_structure tree_unflatten"
        ),
    },
    "utils.checkpoint": {
        "rushlight_autograd.checkpoint": (
            "CheckpointError DefaultDeviceType checkpoint checkpoint_sequential get_device_states "
            "set_checkpoint_debug_enabled set_checkpoint_early_stop set_device_states"
        ),
    },
    "utils.data._utils.worker": {"rushlight_data": "get_worker_info"},
    "utils.data.dataloader": {
        "rushlight_data": "DataLoader default_collate default_convert get_worker_info",
        "rushlight_data.iterators": (
            "LoaderIterator:_BaseDataLoaderIter SerialIterator:_SingleProcessDataLoaderIter "
            "WorkersIterator:_MultiProcessingDataLoaderIter"
        ),
    },
    "utils.data.datapipes.iter.combinatorics": {
        "rushlight.utils.data.datapipes.iter": "ShufflerIterDataPipe",
    },
    "utils.data.dataset": {
        "rushlight_data": (
            "ChainDataset ConcatDataset Dataset IterableDataset StackDataset Subset TensorDataset "
            "random_split"
        ),
    },
    "utils.data.distributed": {"rushlight_data": "DistributedSampler"},
    "utils.data.sampler": {
        "rushlight_data": (
            "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler WeightedRandomSampler"
        ),
    },
    "utils.hooks": {"rushlight_nn.hooks": "RemovableHandle"},
}

# Modules that re-export the module of the same name in rushlight_nn.distributions.
_DISTRIBUTIONS = (
    "bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints "
    "continuous_bernoulli dirichlet distribution exp_family exponential fishersnedecor gamma "
    "generalized_pareto geometric gumbel half_cauchy half_normal independent inverse_gamma kl "
    "kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal "
    "mixture_same_family multinomial negative_binomial normal one_hot_categorical pareto poisson "
    "relaxed_bernoulli relaxed_categorical transformed_distribution transforms uniform von_mises "
    "weibull wishart"
)
MODULES |= {
    f"distributions.{name}": {f"rushlight_nn.distributions.{name}": "*"} for name in _DISTRIBUTIONS.split()
}


def stub(name: str) -> str:
    """Return the contents of the stub file of a module in the table."""
    lines = [f'"""{_docstring(name)}"""', ""]
    added: list[str] = []
    whole = None
    for origin, names in MODULES[name].items():
        for word in names.split():
            if word == "*":
                whole = origin
                lines += [f"import {origin} as _package", f"from {origin} import *"]
                continue
            original, alias = _shown(word)
            lines.append(f"from {origin} import {original} as {alias}")
            added += [] if alias.startswith("_") else [alias]
    listed = "[\n" + "".join(f'    "{alias}",\n' for alias in sorted(added)) + "]"
    if whole:
        lines += ["", "__all__ = list(_package.__all__)", *([f"__all__ += {listed}"] if added else [])]
    else:
        lines += ["", f"__all__ = {listed}"]
    return "\n".join(lines) + "\n"


def _docstring(name: str) -> str:
    origins = ", ".join(f"`{origin}`" for origin in MODULES[name])
    return f"Names of {origins}, under the path `torch.{name}`."


def _shown(word: str) -> tuple[str, str]:
    """Split an entry `name` or `name:alias` into the name in the original module and the re-exported name."""
    original, _, alias = word.partition(":")
    return original, alias or original


class _Loader:
    """Fills a module with the objects that the table lists."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        from rushlight._wrapped import names_of

        name = module.__name__.removeprefix("rushlight.")
        filled = vars(module)
        filled["__doc__"] = _docstring(name)
        whole: list[str] = []
        added: list[str] = []
        for origin, names in MODULES[name].items():
            __import__(origin)
            package = sys.modules[origin]
            for word in names.split():
                if word == "*":
                    whole = list(package.__all__)
                    filled.update({each: getattr(package, each) for each in whole})
                    filled.update(__doc__=package.__doc__, __getattr__=names_of(package))
                    continue
                original, alias = _shown(word)
                filled[alias] = getattr(package, original)
                added += [] if alias.startswith("_") else [alias]
        filled["__all__"] = whole + sorted(added)


def spec_of(name: str) -> ModuleSpec | None:
    """Return the import system's `ModuleSpec` of a module, or None if the module is not in the table."""
    if name.removeprefix("rushlight.") not in MODULES:
        return None
    spec: Any = type(__spec__)  # ModuleSpec, without the slow import of importlib.machinery
    found: ModuleSpec = spec(name, _Loader(), origin=__file__)
    found.has_location = True  # the module's __file__ is this file, which inspect shows as its source
    return found
