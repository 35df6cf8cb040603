"""Which modules the API reference has, in the order in which the site shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A page of the reference: the module that users import, and its title."""

    name: str
    title: str
    stub: str = ""  # the compiled module whose stub has the signatures of functions without one

    @property
    def page(self) -> str:
        return self.name.removeprefix("rushlight.")


CHAPTERS: dict[str, list[Module]] = {
    "Tensors": [
        Module("rushlight", "rushlight: tensors, dtypes, grad mode, saving", "rushlight_core._C"),
        Module("rushlight.linalg", "Linear algebra", "rushlight_core._C"),
        Module("rushlight.fft", "Fourier transforms", "rushlight_core._C"),
        Module("rushlight.special", "Special functions", "rushlight_core._C"),
        Module("rushlight.masked", "Masked reductions"),
        Module("rushlight.signal.windows", "Windows of signals"),
        Module("rushlight.random", "Random generators"),
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
        Module("rushlight.nn.functional", "Functions of layers", "rushlight_core._C"),
        Module("rushlight.nn.init", "Initialisation"),
        Module("rushlight.nn.utils", "Utilities: clipping, packed sequences"),
        Module("rushlight.nn.utils.parametrize", "Parametrizations"),
        Module("rushlight.nn.utils.prune", "Pruning"),
        Module("rushlight.optim", "Optimizers"),
        Module("rushlight.optim.lr_scheduler", "Learning-rate schedules"),
        Module("rushlight.optim.swa_utils", "Averaged weights"),
        Module("rushlight.distributions", "Probability distributions"),
        Module("rushlight.serialization", "Saving and loading"),
    ],
    "Data and processes": [
        Module("rushlight.utils.data", "Datasets and loaders"),
        Module("rushlight.multiprocessing", "Processes that share tensors"),
    ],
    "Tools": [
        Module("rushlight.profiler", "Profiler"),
        Module("rushlight.export", "Programs: capture, save and run"),
        Module("rushlight.fx", "Graphs of Python calls"),
        Module("rushlight.jit", "TorchScript's names"),
        Module("rushlight.testing", "Testing"),
        Module("rushlight_testing.conformance", "Conformance kits"),
        Module("rushlight.backends", "Libraries that compute"),
        Module("rushlight.accelerator", "The accelerator, whichever it is"),
        Module("rushlight.cuda", "CUDA devices"),
    ],
}
