"""Reference values: the results of PyTorch 2.13 for the cases of this folder, stored as data.

The files have one case per line: an expression and its record. An expression is evaluated once with PyTorch's names
and once with ours. Both evaluations have the same inputs, which are drawn from a generator that the expression seeds.
The record of a result has its shape, and all elements or, if there are many, some of them and two weighted sums of
all.

To add a case, add its line with an empty record, `"F.relu(normal(3))": {}`, and, where PyTorch 2.13 is installed, run

    python packages/nn/tests/reference/reference_values.py [SUBJECT...]

`test_reference_values.py` compares our results with the data, and `test_reference_values_against_torch.py` PyTorch's.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent
SUBJECTS = ("functions", "layers", "optimizers", "schedulers", "averages")
RTOL = 1e-6  # the data have eight digits, and everything is computed in float64
# Tolerances of cases that end in one of these words. They are computed in float32, or by PyTorch in bfloat16.
ROUNDED = {"float32": 2e-5, "bfloat16": 1e-2}
WHOLE = 12  # largest number of elements of arrays that are stored completely

Record = dict[str, Any]


def library(name: str) -> SimpleNamespace:
    """Return the modules of `rushlight` (only core and nn) or of `torch` under common names."""
    if name == "torch":
        import torch

        return SimpleNamespace(
            core=torch, nn=torch.nn, F=torch.nn.functional, optim=torch.optim, init=torch.nn.init,
            lr_scheduler=torch.optim.lr_scheduler, swa_utils=importlib.import_module("torch.optim.swa_utils"),
            utils=torch.nn.utils, rnn=torch.nn.utils.rnn, differentiates=True,
        )  # fmt: skip
    import rushlight_core as core
    import rushlight_nn as nn
    from rushlight_nn import optim, utils
    from rushlight_nn.optim import lr_scheduler, swa_utils
    from rushlight_nn.utils import rnn

    return SimpleNamespace(
        core=core, nn=nn, F=nn.functional, optim=optim, init=nn.init, lr_scheduler=lr_scheduler,
        swa_utils=swa_utils, utils=utils, rnn=rnn, differentiates=_differentiates(core),
    )  # fmt: skip


def _differentiates(core: Any) -> bool:
    """Return whether a provider of gradients is attached."""
    try:
        return bool((core.ones(1, requires_grad=True) * 2).requires_grad)
    except RuntimeError:
        return False


class Draws:
    """Random tensors of a library. For a given key they are the same in both libraries."""

    def __init__(self, lib: SimpleNamespace, key: str) -> None:
        self.core = lib.core
        self.random = np.random.RandomState(zlib.crc32(key.encode()))  # its streams never change
        self.leaves: list[Any] = []

    def tensor(self, array: Any) -> Any:
        return self.core.from_numpy(np.array(array))

    def _leaf(self, array: Any) -> Any:
        tensor = self.tensor(array).requires_grad_()
        self.leaves.append(tensor)
        return tensor

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        """Return a leaf with normal numbers."""
        return self._leaf(scale * self.random.standard_normal(shape))

    def positive(self, *shape: int) -> Any:
        """Return a leaf with numbers between 0.1 and 0.9."""
        return self._leaf(self.random.uniform(0.1, 0.9, shape))

    def values(self, *shape: int) -> Any:
        """Return normal numbers that do not require a gradient."""
        return self.tensor(self.random.standard_normal(shape))

    def weights(self, *shape: int) -> Any:
        """Return numbers between 0.1 and 0.9 that do not require a gradient."""
        return self.tensor(self.random.uniform(0.1, 0.9, shape))

    def signs(self, *shape: int) -> Any:
        """Return random signs, 1 or -1."""
        return self.tensor(np.sign(self.random.uniform(-1, 1, shape)))

    def below(self, limit: int, *shape: int) -> Any:
        """Return integers from 0 to `limit` - 1."""
        return self.tensor(self.random.randint(0, limit, shape))

    def ints(self, *values: Any) -> Any:
        """Return the given integers as a tensor."""
        return self.tensor(np.array(values))

    def given(self, values: Any, grad: Any) -> Any:
        """Return a tensor with the gradient `grad`."""
        values.grad = grad
        return values

    def clipped(self, clip: Callable[..., Any], tensors: list[Any], *arguments: float) -> list[Any]:
        """Clip the gradients of tensors, and return the tensors."""
        clip(tensors, *arguments)
        return tensors

    def mask(self, *shape: int) -> Any:
        """Return random booleans."""
        return self.tensor(self.random.uniform(size=shape) < 0.5)


def tensors_in(value: Any, lib: SimpleNamespace) -> Iterable[Any]:
    """Yield the tensors and numbers in the result of a function."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item, lib)
    elif value is not None:
        yield value


def array_of(value: Any) -> np.ndarray:
    """Return a tensor, parameter or number as an array."""
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy())
    return np.asarray(value)


def summary(value: Any) -> list[Any]:
    """Return the stored form of an array: its shape, and all elements, or six elements and two weighted sums."""
    array = array_of(value) if hasattr(value, "shape") else np.float64(value)
    shape = "x".join(map(str, array.shape))
    kind = "" if array.dtype == np.float64 else array.dtype.name
    flat = array.reshape(-1)
    if np.iscomplexobj(flat):
        flat = flat.view(flat.real.dtype)
    flat = flat.astype(np.float64)
    if flat.size > WHOLE:
        index = np.arange(flat.size)
        chosen = flat[np.linspace(0, flat.size - 1, 6).astype(int)]
        flat = np.array([*chosen, np.sum(flat * np.cos(index)), np.sum(flat * np.sin(index * 0.7 + 1))])
    return [f"{shape} {kind}".strip(), *(float(f"{number:.8g}") for number in flat)]


def differences(found: Record, kept: Record, rtol: float = RTOL) -> list[str]:
    """Return descriptions of the differences between a record and the stored one. Gradients that `found` lacks,
    because there is no provider of gradients, are ignored."""
    wrong = []
    for name, expected in kept.items():
        if name.startswith("grad ") and name not in found:
            continue
        if name not in found:
            wrong.append(f"{name} is missing")
            continue
        result = found[name]
        if result[0] != expected[0] or len(result) != len(expected):
            wrong.append(f"{name}: shape and dtype {result[0]!r}, not {expected[0]!r}")
            continue
        ours, theirs = np.array(result[1:], float), np.array(expected[1:], float)
        finite = theirs[np.isfinite(theirs)]
        atol = rtol * max(1e-3, float(np.abs(finite).max())) if finite.size else 0.0
        if not np.allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True):
            wrong.append(f"{name}:\n    {ours.tolist()}\n    is not PyTorch's\n    {theirs.tolist()}")
    wrong += [f"{name} is not among the data" for name in found if name not in kept]
    return wrong


def backward(lib: SimpleNamespace, results: list[Any], key: str) -> bool:
    """Differentiate the results in a random direction. Return False if there is no provider of gradients."""
    if not lib.differentiates:
        return False
    random = np.random.RandomState(zlib.crc32(key.encode()) ^ 1)
    total = None
    for result in results:
        if getattr(result, "requires_grad", False):
            direction = lib.core.from_numpy(np.array(random.standard_normal(tuple(result.shape))))
            part = (result * direction.to(result.dtype)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
    return total is not None


def run_function(lib: SimpleNamespace, key: str) -> Record:
    """Return the record of a case of functions: the results of an expression, and the gradients of its random leaves."""
    draws = Draws(lib, key)
    names = {name: getattr(draws, name) for name in dir(draws) if not name.startswith("_")}
    value = eval(key, {**vars(lib), **names})
    results = list(tensors_in(value, lib))
    record = {f"result {i}": summary(result) for i, result in enumerate(results)}
    if backward(lib, results, key):
        for i, leaf in enumerate(draws.leaves):
            if leaf.grad is not None:
                record[f"grad {i}"] = summary(leaf.grad)
    return record


def fill(lib: SimpleNamespace, module: Any, random: np.random.RandomState) -> None:
    """Fill the parameters and buffers of a module with random values: positive variances, and weights of moderate size."""
    for name, tensor in module.state_dict().items():
        if not tensor.is_floating_point():
            continue
        array = random.standard_normal(tuple(tensor.shape)) * 0.5
        if "var" in name:
            array = np.abs(array) + 0.5
        with lib.core.no_grad():
            tensor.copy_(lib.core.from_numpy(np.array(array)))


def run_layer(lib: SimpleNamespace, key: str) -> Record:
    """Return the record of a case of layers, `MODULE <- ARGUMENTS`. It has the results of two calls in training mode
    and of one in evaluation mode, the gradients after the first call, and the buffers."""
    make, call = key.split(" <- ")
    draws = Draws(lib, key)
    names = {name: getattr(draws, name) for name in dir(draws) if not name.startswith("_")}
    module = eval(make, {**vars(lib), **names})
    module = module.to(lib.core.float64)
    lazy = "Lazy" in make
    if not lazy:
        fill(lib, module, draws.random)
    record: Record = {}
    for round_ in ("train", "again", "eval"):
        module.train(round_ != "eval")
        draws.leaves.clear()
        arguments = eval(f"({call},)", {**vars(lib), **names})
        if lazy:  # the first call determines the shapes
            with lib.core.no_grad():
                module(*arguments)
            fill(lib, module, draws.random)
            lazy = False
        results = list(tensors_in(module(*arguments), lib))
        record.update({f"{round_} {i}": summary(result) for i, result in enumerate(results)})
        if round_ == "train" and backward(lib, results, key):
            record.update(
                {f"grad {i}": summary(t.grad) for i, t in enumerate(draws.leaves) if t.grad is not None}
            )
            record.update(
                {
                    f"grad {name}": summary(p.grad)
                    for name, p in module.named_parameters()
                    if p.grad is not None
                }
            )
    record.update({f"buffer {name}": summary(b) for name, b in module.named_buffers()})
    return record


STEPS = 8  # RAdam averages squares from its sixth step on


def run_optimizer(lib: SimpleNamespace, key: str) -> Record:
    """Return the record of a case of optimizers: parameters and state after the first, second and last step, with
    random gradients. The expression refers to the parameters as `params` (or as `first` and `rest` for two groups
    with different settings). A comment at its end gives the dtype if it is not float64."""
    random = np.random.RandomState(zlib.crc32(key.encode()))
    dtype = "float32" if key.endswith("# float32") else "float64"
    shapes = [(4, 3), (3, 4), (2, 2)] if "Muon" in key else [(37,), (3, 4), ()]
    if "# complex" in key:
        dtype = "complex128"

    def draw(shape: tuple[int, ...]) -> Any:
        array = random.standard_normal(shape)
        if dtype == "complex128":
            array = array + 1j * random.standard_normal(shape)
        return lib.core.from_numpy(np.array(array, dtype=dtype))

    params = [draw(shape).requires_grad_() for shape in shapes]
    names = {"params": params, "first": params[:1], "rest": params[1:]}
    optimizer = eval(key, {**vars(lib), **names})
    record: Record = {}
    for step in range(1, STEPS + 1):
        for i, param in enumerate(params):
            grad = draw(shapes[i])
            param.grad = None if (step, i) == (2, 1) else grad  # one parameter skips a step
        if "LBFGS" in key:
            record[f"loss {step}"] = summary(optimizer.step(lambda: _quadratic(lib, params)))
        else:
            optimizer.step()
        if step in (1, 2, STEPS):
            record.update({f"step {step} parameter {i}": summary(p) for i, p in enumerate(params)})
    for i, param in enumerate(params):
        for name, value in sorted(optimizer.state[param].items()):
            if name not in ("al", "func_evals") and not isinstance(value, (list, type(None))):
                record[f"state {i} {name}"] = summary(value)
    return record


def _quadratic(lib: SimpleNamespace, params: list[Any]) -> Any:
    """Return a quadratic loss with known gradients, for optimizers that evaluate it several times per step."""
    total = 0.0
    for i, param in enumerate(params):
        values = param.detach()
        curvature = lib.core.from_numpy(
            np.array(np.linspace(1, 3 + i, max(1, values.numel())).reshape(tuple(values.shape)))
        )
        param.grad = curvature * values + 0.1 * values * values * values
        total = total + (curvature * values * values / 2 + 0.025 * values**4).sum()
    return total


def run_scheduler(lib: SimpleNamespace, key: str) -> Record:
    """Return the record of a case of schedulers: rates, momenta and betas of two groups before each of many steps."""
    make, _, optimizer = key.partition(" of ")
    params = [lib.core.ones(2).requires_grad_() for _ in range(2)]
    groups = [{"params": params[:1], "lr": 0.5}, {"params": params[1:], "lr": 0.2}]
    if "last_epoch=4" in make:
        for group in groups:
            group["initial_lr"] = 1.5 * group["lr"]
    opt = eval(optimizer or "optim.SGD(groups, lr=0.1, momentum=0.9)", {**vars(lib), "groups": groups})
    scheduler = eval(make, {**vars(lib), "opt": opt})
    rates, others = [], []
    metrics = [5.0, 4.0, 4.2, 4.1, 4.3, 3.9999, 3.99985, 4.5, 4.4, 3.0, 3.1, 3.2, 3.3, 3.4, 2.9, 2.95]
    total = 16 if "total_steps=16" in make else 24
    for step in range(total):
        for group in opt.param_groups:
            rates.append(float(group["lr"]))
            others.append(float(group["momentum"] if "momentum" in group else group["betas"][0]))
        opt.step()
        if "Plateau" in make:
            scheduler.step(metrics[step % len(metrics)])
        elif step < total - 1:
            scheduler.step()
    return {
        "rates": ["", *rates],
        "momenta": ["", *others],
        "last": ["", *map(float, scheduler.get_last_lr())],
    }


def run_average(lib: SimpleNamespace, key: str) -> Record:
    """Return the record of a case of averages: the state of an averaged model after updates and after `update_bn`."""
    random = np.random.RandomState(7)
    model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).to(lib.core.float64)
    fill(lib, model, random)
    averaged = eval(key, {**vars(lib), "model": model})
    record: Record = {}
    for step in range(4):
        fill(lib, model, random)
        averaged.update_parameters(model)
        for name, value in averaged.state_dict().items():
            record[f"update {step} {name}"] = summary(value)
    batches = [lib.core.from_numpy(random.standard_normal((5, 3))) for _ in range(3)]
    lib.swa_utils.update_bn([(batch, None) for batch in batches], averaged)
    record.update({f"statistics {name}": summary(b) for name, b in averaged.module.named_buffers()})
    record["result"] = summary(averaged.eval()(batches[0]))
    return record


RUN: dict[str, Callable[[SimpleNamespace, str], Record]] = {
    "functions": run_function,
    "layers": run_layer,
    "optimizers": run_optimizer,
    "schedulers": run_scheduler,
    "averages": run_average,
}


def run(lib: SimpleNamespace, subject: str, key: str) -> Record:
    """Return the record of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RUN[subject](lib, key)


def wrong_in(lib: SimpleNamespace, subject: str, key: str, expected: Record) -> list[str]:
    """Return a list with the first difference between a library's result and the data, or an empty list."""
    try:
        wrong = differences(run(lib, subject, key), expected, ROUNDED.get(key.partition("# ")[2], RTOL))
    except Exception as error:
        wrong = [f"{type(error).__name__}: {error}"]
    return [f"{key}\n  " + "\n  ".join(wrong)] if wrong else []


def kept(subject: str) -> dict[str, Record]:
    """Return the stored data of a subject."""
    return json.loads((FOLDER / f"{subject}.json").read_text())


def write(subject: str) -> None:
    """Write PyTorch's values for the cases of a subject, one case per line."""
    lib = library("torch")
    lines = []
    for key in kept(subject):
        try:
            record = run(lib, subject, key)
        except Exception as error:
            raise RuntimeError(f"PyTorch does not run {key}") from error
        lines.append(f"{json.dumps(key)}: {json.dumps(record, separators=(',', ':'))}")
    (FOLDER / f"{subject}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    for subject in sys.argv[1:] or SUBJECTS:
        write(subject)
        print(subject, len(kept(subject)), (FOLDER / f"{subject}.json").stat().st_size)
