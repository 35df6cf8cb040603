"""The modules of the API reference, in the order in which the site shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A page of the reference: the module that users import, and its title."""

    name: str
    title: str

    @property
    def page(self) -> str:
        return self.name.removeprefix("rushlight.")


CHAPTERS: dict[str, list[Module]] = {
    "Tensors": [
        Module("rushlight", "rushlight: tensors, dtypes, grad mode, saving"),
        Module("rushlight.linalg", "Linear algebra"),
        Module("rushlight.fft", "Fourier transforms"),
        Module("rushlight.special", "Special functions"),
        Module("rushlight.array_api", "The array API standard"),
        Module("rushlight.masked", "Masked reductions"),
        Module("rushlight.sparse", "Sparse tensors"),
        Module("rushlight.signal.windows", "Windows of signals"),
        Module("rushlight.random", "Random generators"),
        Module("rushlight.quasirandom", "Quasirandom numbers"),
        Module("rushlight.storage", "Storage"),
        Module("rushlight.utils.dlpack", "DLPack"),
        Module("rushlight.overrides", "Overriding operators"),
        Module("rushlight.library", "Custom operators"),
    ],
    "Gradients": [
        Module("rushlight.autograd", "Automatic differentiation"),
        Module("rushlight.autograd.functional", "Jacobians and Hessians"),
        Module("rushlight.autograd.forward_ad", "Forward mode"),
        Module("rushlight.autograd.graph", "The recorded graph"),
        Module("rushlight.func", "Transforms of functions"),
        Module("rushlight.utils.checkpoint", "Activation checkpointing"),
        Module("rushlight.amp", "Mixed precision"),
    ],
    "Networks": [
        Module("rushlight.nn", "Layers and losses"),
        Module("rushlight.nn.functional", "Functions of layers"),
        Module("rushlight.nn.attention", "Choice of the attention kernel"),
        Module("rushlight.nn.attention.flex_attention", "Attention with functions of the scores"),
        Module("rushlight.nn.init", "Initialisation"),
        Module("rushlight.nn.utils", "Gradient clipping and other utilities"),
        Module("rushlight.nn.utils.rnn", "Packed and padded sequences"),
        Module("rushlight.nn.utils.parametrizations", "Ready-made parametrizations"),
        Module("rushlight.nn.utils.parametrize", "Parametrizations"),
        Module("rushlight.nn.utils.prune", "Pruning"),
        Module("rushlight.nn.grad", "Gradients of convolutions"),
        Module("rushlight.optim", "Optimizers"),
        Module("rushlight.optim.lr_scheduler", "Learning-rate schedules"),
        Module("rushlight.optim.swa_utils", "Averaged weights"),
        Module("rushlight.distributions", "Probability distributions"),
        Module("rushlight.distributions.transforms", "Transforms of random variables"),
        Module("rushlight.distributions.constraints", "Constraints on parameters"),
        Module("rushlight.serialization", "Saving and loading"),
        Module("rushlight.hub", "Files from the network"),
    ],
    "Data and processes": [
        Module("rushlight.utils.data", "Datasets and loaders"),
        Module("rushlight.distributed", "Groups of processes"),
        Module("rushlight.distributed.algorithms.join", "Ranks with different numbers of inputs"),
        Module("rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks", "Communication hooks"),
        Module(
            "rushlight.distributed.algorithms.ddp_comm_hooks.debugging_hooks",
            "A communication hook for timing",
        ),
        Module("rushlight.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "Gradients of low rank"),
        Module("rushlight.nn.parallel", "Modules over processes"),
        Module("rushlight.multiprocessing", "Processes that share tensors"),
        Module("rushlight.futures", "Futures"),
    ],
    "Tools": [
        Module("rushlight.profiler", "Profiler"),
        Module("rushlight.utils.benchmark", "Timing statements"),
        Module("rushlight.utils.flop_counter", "Counting floating-point operations"),
        Module("rushlight.utils.tensorboard", "Writing for TensorBoard"),
        Module("rushlight.utils.module_tracker", "Which modules run"),
        Module("rushlight.utils.weak", "Weak references to tensors"),
        Module("rushlight.export", "Programs: capture, save and run"),
        Module("rushlight.onnx", "Models in ONNX"),
        Module("rushlight.fx", "Graphs of Python calls"),
        Module("rushlight.jit", "TorchScript's names"),
        Module("rushlight.compiler", "The compiler's names"),
        Module("rushlight.as_torch", "Programs that import torch"),
        Module("rushlight.testing", "Testing"),
        Module("rushlight_testing.conformance", "Conformance kits"),
        Module("rushlight.backends", "Libraries that compute"),
        Module("rushlight.backends.cpu", "The CPU's instructions"),
        Module("rushlight.accelerator", "The accelerator, whichever it is"),
        Module("rushlight.cuda", "CUDA devices"),
    ],
}

# Prefixes of modules that the reference does not list. They re-export listed names, or only raise for absent functions.
UNLISTED = {
    "by the file that PyTorch has its names in": (
        "amp.autocast_mode", "amp.grad_scaler", "autograd.anomaly_mode", "autograd.function", "autograd.grad_mode",
        "autograd.gradcheck", "autograd.profiler", "autograd.variable", "cuda.amp", "cuda.graphs", "cuda.memory",
        "cuda.random", "cuda.streams", "distributions.", "functional", "fx.", "jit.annotations", "multiprocessing.",
        "nn.common_types", "nn.modules", "nn.parameter", "nn.utils.", "optim.", "profiler.profiler", "return_types",
        "signal", "types", "utils.data.", "utils.hooks", "utils.model_zoo",
    ),
    "not there, which is what programs ask": (
        "ao", "backends.", "cpu", "distributed.", "mps", "nested", "nn.parallel.", "onnx.", "quantization",
        "utils.cpp_extension", "utils.deterministic", "xpu",
    ),
    "of no names, or of the library itself": (
        "ops", "torch_version", "utils", "utils.benchmark.", "utils.collect_env", "utils.tensorboard.", "version",
    ),
}  # fmt: skip
