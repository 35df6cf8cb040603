"""Programs of models of rushlight.nn equal the models bit for bit, in this process and in one without Python."""

from __future__ import annotations

import collections
import copy
import dataclasses
import pickle
import random
import subprocess
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
import rushlight_core
from rushlight import nn
from rushlight_graph import _run


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=2), nn.GroupNorm(2, 8), nn.SiLU(),
        )  # fmt: skip
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x: Any) -> Any:
        return F.log_softmax(self.head(self.features(x).flatten(1)), dim=1)


class Transformer(nn.Module):
    """A transformer from tokens to logits, with hand-written causal attention and a mask that is a buffer."""

    def __init__(self, width: int = 16, heads: int = 2, length: int = 7) -> None:
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(11, width)
        self.positions = nn.Parameter(torch.randn(length, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))

    def forward(self, ids: Any) -> Any:
        batch, length = ids.shape
        x = self.tokens(ids) + self.positions[:length]
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        )
        scores = (q @ k.transpose(-2, -1)) / k.size(-1) ** 0.5
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, -1))
        x = x + self.mlp(self.norms[1](x))
        return self.norms[2](x) @ self.tokens.weight.t()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x: Any) -> Any:
        out, (h, c) = self.lstm(x)
        return {"out": out, "state": (h, c)}


MODELS = {
    "convolutional": (Convolutional, lambda: torch.randn(2, 1, 12, 12)),
    "transformer": (Transformer, lambda: torch.randint(0, 11, (2, 5))),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda: torch.randn(2, 5, 8),
    ),
    "recurrent": (Recurrent, lambda: torch.randn(2, 5, 4)),
}


def bits(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [(value.dtype, tuple(value.shape), value.detach().contiguous().numpy().tobytes())]
    parts = value.values() if isinstance(value, dict) else value
    return [one for part in parts for one in bits(part)]


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_a_program_computes_what_the_model_does(name: str, training: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make().train(training), example()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    state = torch.get_rng_state()
    program = torch.export.export(model, (x,))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert set(program.state_dict) <= set(before)
    torch.export.save(program, tmp_path / "model.rl")
    run = torch.export.load(tmp_path / "model.rl").module()
    given = x.clone() if not x.is_floating_point() else torch.randn_like(x)  # other values than in the trace
    for seed in (1, 2):
        torch.manual_seed(seed)
        wanted = model(given)
        torch.manual_seed(seed)
        assert bits(run(given)) == bits(wanted)


@pytest.mark.parametrize("name", MODELS)
def test_it_runs_in_a_process_without_python(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, example = MODELS[name]
    model, x = make().eval(), example()
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.rl")
    np.save(tmp_path / "x.npy", x.numpy())
    wanted = bits(model(x))
    outputs = [tmp_path / f"{i}.npy" for i in range(len(wanted))]
    command = [str(_run.program()), str(tmp_path / "model.rl"), "--input", str(tmp_path / "x.npy")]
    command += [word for path in outputs for word in ("--output", str(path))]
    done = subprocess.run(command, env=_run.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [np.load(path).tobytes() for path in outputs] == [content for _, _, content in wanted]


def test_shared_parameters_have_all_their_names(tmp_path: Path) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    model = nn.Sequential(first, second)
    program = torch.export.export(model, (torch.ones(2, 3),))
    torch.export.save(program, tmp_path / "model.rl")
    for one in (program, torch.export.load(tmp_path / "model.rl"), program.simplify()):
        state = one.state_dict
        assert sorted(state) == sorted(model.state_dict())
        assert state["0.weight"] is state["1.weight"]
        model.load_state_dict(state)
    assert len(list(program.parameters())) == 3


def test_parameters_may_train_after_the_capture() -> None:
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    program = torch.export.export(model, (x,))
    model(x).sum().backward()
    assert model.weight.grad is not None
    assert program.state_dict["weight"].grad is None


def test_a_backward_pass_is_captured() -> None:
    class Stepping(nn.Linear):
        def forward(self, x: Any) -> Any:
            out = super().forward(x)
            out.sum().backward()
            return out

    class Penalised(nn.Module):
        def forward(self, x: Any) -> Any:
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(F.dropout(x, 0.5).sum(), x)
            return gradient

    model, x = Stepping(3, 2), torch.randn(4, 3)
    program = torch.export.export(model, (x,))
    assert model.weight.grad is None
    for _ in range(2):
        assert torch.equal(program.module()(x), model(x))
    assert torch.equal(program.state_dict["weight.grad"], model.weight.grad)
    run = torch.export.export(Penalised(), (x,)).module()
    torch.manual_seed(0)
    wanted = Penalised()(x)
    torch.manual_seed(0)
    assert torch.equal(run(x), wanted)


def test_an_error_names_the_module() -> None:
    class Branching(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match=r"bool\(\): reads the values.*test_export\.py:\d+") as caught:
        torch.export.export(nn.Sequential(nn.Linear(3, 3), Branching()), (torch.randn(4, 3),))
    assert any("1" in note for note in caught.value.__notes__)


class Stateful(nn.Module):
    """A module with three buffers, whose forward is a function of the module and the argument."""

    def __init__(self, function: Any, **attributes: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        for number, name in enumerate("abn"):
            self.register_buffer(name, torch.arange(3.0) + number)
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


def average(self: Any, x: Any) -> Any:
    self.n = self.n * 0.9 + x.mean(0) * 0.1
    return x + self.n


def earlier_and_later(self: Any, x: Any) -> Any:
    before, part = self.n, self.n[1:]
    self.n = self.n + 1
    return before, part, self.n, {"twice": before * 2}


def exchange(self: Any, x: Any) -> Any:
    self.a, self.b, self.n = self.b, self.n, self.a + x.sum(0)
    return self.a + x


def part_of_the_input(self: Any, x: Any) -> Any:
    self.n = x[0]
    return self.n + 1


def replaced_and_written(self: Any, x: Any) -> Any:
    self.n = self.n + 1
    self.n = self.n * 2
    self.n.add_(x[0])
    return self.n


def without_gradients(self: Any, x: Any) -> Any:
    self.n = self.linear(x).mean(0).detach()
    return x + self.n


REPLACING = [average, earlier_and_later, exchange, part_of_the_input, replaced_and_written, without_gradients]


@pytest.mark.parametrize("sizes", [None, ({0: torch.export.Dim("rows")},)])
@pytest.mark.parametrize("function", REPLACING)
def test_buffers_may_be_replaced(function: Any, sizes: Any, tmp_path: Path) -> None:
    model = Stateful(function)
    before = {name: (tensor, tensor.clone()) for name, tensor in model.named_buffers()}
    program = torch.export.export(model, (torch.randn(4, 3),), dynamic_shapes=sizes)
    for name, tensor in model.named_buffers():
        assert tensor is before[name][0]
        assert torch.equal(tensor, before[name][1])
    torch.export.save(program, tmp_path / "m")
    for one in (torch.export.load(tmp_path / "m"), program.simplify()):
        run, eager = one.module(), copy.deepcopy(model)
        for _ in range(4):
            x = torch.randn(4 if sizes is None else 7, 3)
            assert_same(run(x.clone()), eager(x))
        for name, tensor in one.named_buffers():
            assert torch.equal(tensor, eager.get_buffer(name))


def assert_same(a: Any, b: Any) -> None:
    first, second = (torch.utils._pytree.tree_leaves(value) for value in (a, b))
    assert len(first) == len(second)
    assert all(map(torch.equal, first, second))


def longer(self: Any, x: Any) -> Any:
    self.n = torch.cat([self.n, self.n])
    return x.sum() + self.n.sum()


def with_gradients(self: Any, x: Any) -> Any:
    self.n = self.linear(x).mean(0)
    return x + self.n


@pytest.mark.parametrize("function", [longer, with_gradients])
def test_other_replacements_of_buffers_are_refused(function: Any) -> None:
    model = nn.Sequential(Stateful(function))
    before = model[0].n
    with pytest.raises(
        NotImplementedError, match=r"assigns another tensor to '0\.n'(.|\n)*same dtype and shape"
    ):
        torch.export.export(model, (torch.ones(2, 3),))
    assert model[0].n is before
    assert torch.equal(before, torch.arange(3.0) + 2)


# Numbers and tensors that a call leaves in the module -----------------------------------------------------------------


def counts(self: Any, x: Any) -> Any:
    self.calls += 1
    return x * self.calls


def counts_in_a_dict(self: Any, x: Any) -> Any:
    self.seen["calls"] = self.seen.get("calls", 0) + 1
    return x + self.seen["calls"]


def keeps_the_first(self: Any, x: Any) -> Any:
    self.kept.append(x)
    return self.kept[0] + x


def keeps_some(self: Any, x: Any) -> Any:
    self.window.append(x)
    return sum(self.window)


def grows(self: Any, x: Any) -> Any:
    self.cache = x if self.cache is None else torch.cat([self.cache, x])
    return self.cache.sum()


def toggles(self: Any, x: Any) -> Any:
    self.flag = not self.flag
    return x if self.flag else -x


@pytest.mark.parametrize("function", [counts, counts_in_a_dict, keeps_the_first, keeps_some, grows, toggles])
@pytest.mark.parametrize("sizes", [None, ({0: torch.export.Dim("rows")},)])
def test_a_second_call_that_computes_something_else_is_refused(function: Any, sizes: Any) -> None:
    window: Any = collections.deque(maxlen=3)
    attributes = {"calls": 0, "seen": {}, "kept": [], "window": window, "cache": None, "flag": False}
    model = nn.Sequential(Stateful(function, **attributes))
    with pytest.raises(
        NotImplementedError, match=r"each call of the module changes '0\.\w+(\.\w+)?', (.|\n)*hint"
    ):
        torch.export.export(model, (torch.arange(12.0).reshape(4, 3),), dynamic_shapes=sizes)
    for name, value in {"calls": 0, "seen": {}, "kept": [], "cache": None, "flag": False}.items():
        assert getattr(model[0], name) == value
    assert model[0].window is window
    assert len(window) == 0


def counts_only(self: Any, x: Any) -> Any:
    self.calls += 1
    self.seen["shape"] = x.shape
    self.last = x * 2
    return self.last


def makes_a_table(self: Any, x: Any) -> Any:
    if self.cache is None:
        self.calls, self.cache = 7, torch.arange(3).float()
    return x + self.cache * self.calls


def draws(self: Any, x: Any) -> Any:
    self.calls += 1
    return x + torch.rand(3)


def test_a_second_call_is_made_only_if_a_call_changes_the_module() -> None:
    def function(self: Any, x: Any) -> Any:
        made.append(x)
        self.calls = self.calls + 1 if counting else self.calls
        return self.linear(x)

    for counting in (False, True):
        made: list[Any] = []
        torch.export.export(
            nn.Sequential(Stateful(function, calls=0), nn.BatchNorm1d(3)), (torch.randn(4, 3),)
        )
        assert len(made) == (2 if counting else 1)


@pytest.mark.parametrize("function", [counts_only, makes_a_table, draws])
def test_what_a_call_leaves_may_be_of_no_effect(function: Any) -> None:
    model = Stateful(function, calls=0, seen={}, cache=None)
    eager = copy.deepcopy(model)
    random = torch.get_rng_state()
    run = torch.export.export(model, (torch.arange(12.0).reshape(4, 3),)).module()
    assert torch.equal(torch.get_rng_state(), random)
    assert (model.calls, model.seen, model.cache) == (0, {}, None)
    for seed in range(3):
        x = torch.randn(4, 3)
        torch.manual_seed(seed)
        wanted = eager(x)
        torch.manual_seed(seed)
        assert torch.equal(run(x), wanted)


def test_what_programs_do_with_python() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    class Mixed(nn.Linear):
        def forward(self, x: Any) -> Any:
            x = sum(Doubled.apply(row) for row in super().forward(x))
            x = torch.utils.checkpoint.checkpoint(torch.relu, x, use_reentrant=False)
            (gradient,) = torch.autograd.grad((x.detach() * self.bias).sum(), self.bias)
            layer = nn.Linear(2, 2)
            return torch.func.functional_call(
                layer, {"weight": self.weight[:, :2], "bias": self.bias}, (gradient,)
            )

    model, x = Mixed(3, 2), torch.randn(4, 3)
    run, given = torch.export.export(model, (x,)).module(), torch.randn(4, 3)
    assert torch.equal(run(given), model(given))


def constant_gradient(x: Any, y: Any) -> Any:
    (h,) = torch.autograd.grad((x**3).sum(), x)
    return x.sum() * y.sum() + (h * x).sum()


def without_grad(x: Any, y: Any) -> Any:
    with torch.no_grad():
        scale = x * 2
    return (scale * y * x).sum()


def with_grad_inside(x: Any, y: Any) -> Any:
    with torch.no_grad():
        scale = x * 2
        with torch.enable_grad():
            scale = scale * y
    return (scale * x).sum()


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        constant_gradient,
        without_grad,
        with_grad_inside,
        lambda x, y: (x.detach() * x * y).sum(),
        lambda x, y: (x.data * x * y).sum(),
    ],
)
def test_gradients_of_runs_respect_gradient_modes(function: Any, saved: bool, tmp_path: Path) -> None:
    class Model(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return function(x, y)

    given = [torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([5.0, 7.0], requires_grad=True)]
    wanted = torch.autograd.grad(function(*given), given)
    exported = torch.export.export(Model(), tuple(t.detach().requires_grad_() for t in given))
    for program in (exported, exported.simplify()):
        if saved:
            torch.export.save(program, tmp_path / "modes.rl")
            program = torch.export.load(tmp_path / "modes.rl")
        got = torch.autograd.grad(program.module()(*given), given)
        for one, other in zip(got, wanted, strict=True):
            assert torch.equal(one, other)


def test_programs_that_are_captured_without_gradients_compute_them() -> None:
    with torch.no_grad():
        run = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),)).module()
    x = torch.ones(1, 2, requires_grad=True)
    run(x).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("grad", [None, torch.ones(2)])
def test_gradients_of_inputs_that_are_set_are_refused(grad: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            (x * x).sum().backward()
            return x.grad

    x = torch.ones(2, requires_grad=True)
    x.grad = grad
    with pytest.raises(NotImplementedError, match="the gradient of input 'x' was set"):
        torch.export.export(Model(), (x,))


def test_writes_of_other_threads_are_refused() -> None:
    class Model(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x * 2
            thread = threading.Thread(target=y.add_, args=(1,))
            thread.start()
            thread.join()
            return y + 1

    with pytest.raises(NotImplementedError, match="was modified by another thread"):
        torch.export.export(Model(), (torch.zeros(2),))


def test_parts_of_larger_tensors_are_refused_if_the_rest_is_used() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.whole = torch.arange(6.0)
            self.register_buffer("part", self.whole[:3])

        def forward(self, x: Any) -> Any:
            return x + self.part.sum(), self.whole * 1

    with pytest.raises(NotImplementedError, match="a part of a larger tensor"):
        torch.export.export(Model(), (torch.ones(1),))


def test_captures_beside_mutations_of_saved_tensors() -> None:
    """Both need the same stage of operators, one after the other."""

    def gradient() -> Any:
        x = torch.ones(3, requires_grad=True)
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            y = x.clone()
            loss = (y**2).sum()
            y.sin_()
            loss.backward()
        return x.grad

    layer = nn.Linear(2, 2)
    for _ in range(2):
        assert gradient().tolist() == [2.0, 2.0, 2.0]
        program = torch.export.export(layer, (torch.ones(1, 2),))
        assert torch.equal(program.module()(torch.ones(1, 2)), layer(torch.ones(1, 2)))
    with (
        torch.autograd.graph.allow_mutation_on_saved_tensors(),
        pytest.raises(RuntimeError, match="hint: capture outside of"),
    ):
        torch.export.export(layer, (torch.ones(1, 2),))
    assert gradient().tolist() == [2.0, 2.0, 2.0]


def test_gradients_flow_through_results_that_are_an_argument() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

        def forward(self, x: Any) -> Any:
            return (self.weight.contiguous() * x.contiguous()).float().contiguous()

    model = Model()
    program = torch.export.export(model, (torch.ones(2, requires_grad=True),))
    x = torch.tensor([5.0, 7.0], requires_grad=True)
    (weight,) = program.parameters()
    weight.requires_grad_()
    got = torch.autograd.grad(program.module()(x).sum(), (weight, x))
    wanted = torch.autograd.grad(model(x).sum(), (model.weight, x))
    assert all(map(torch.equal, got, wanted))


# Objects of registered classes -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Batch:
    images: Any
    labels: Any = None
    scale: float = 2.0


class Named(collections.OrderedDict):  # type: ignore[type-arg]
    """As the outputs of models in libraries: a dict of another class."""


torch.export.register_dataclass(Batch, serialized_type_name="tests.Batch")
torch.utils._pytree.register_pytree_node(
    Named, lambda d: (list(d.values()), list(d)), lambda parts, keys: Named(zip(keys, parts, strict=True))
)


class OfBatches(nn.Module):
    def forward(self, batch: Batch) -> Any:
        images = batch.images * batch.scale
        labels = images if batch.labels is None else batch.labels
        return Named(out=Batch(images, (labels + 1, None), 1.0), total=images.sum())


def test_arguments_and_results_are_objects_of_registered_classes(tmp_path: Path) -> None:
    model = OfBatches()
    for labels in (None, torch.ones(4, 3)):
        program = torch.export.export(model, (Batch(torch.ones(4, 3), labels),))
        torch.export.save(program, tmp_path / "m")
        for run in (program.module(), torch.export.load(tmp_path / "m").module()):
            given = Batch(torch.randn(4, 3), None if labels is None else torch.randn(4, 3))
            got, wanted = run(given), model(given)
            assert type(got) is Named
            assert list(got) == ["out", "total"]
            assert type(got["out"]) is Batch
            assert got["out"].scale == 1.0
            assert torch.equal(got["out"].images, wanted["out"].images)
            assert torch.equal(got["out"].labels[0], wanted["out"].labels[0])
            assert torch.equal(got["total"], wanted["total"])
            for other in (
                Batch(torch.ones(4, 3), torch.ones(4, 3) if labels is None else None),
                Batch(torch.ones(4, 3), labels, 3.0),
                (torch.ones(4, 3), labels, 2.0),
                torch.ones(4, 3),
            ):
                with pytest.raises(TypeError, match=r"must have .*tests\.Batch\("):
                    run(other)


def test_a_class_that_is_defined_again() -> None:
    def swap(pair: Any) -> Any:
        return kind(pair.right * 1, pair.left * 1)

    kinds = [dataclasses.make_dataclass("Pair", ["left", "right"]) for _ in range(2)]
    for kind in kinds:
        torch.export.register_dataclass(kind, serialized_type_name="tests.Pair")
        model = nn.Module()
        model.forward = swap
        program = torch.export.export(model, (kind(torch.ones(1), torch.zeros(1)),))
        assert type(program.module()(kind(torch.ones(1), torch.zeros(1)))) is kind


def test_sizes_in_objects_of_registered_classes() -> None:
    model, rows = OfBatches(), torch.export.Dim("rows")
    for shapes in ({"batch": {"images": {0: rows}}}, (({0: rows}, None),)):
        run = torch.export.export(model, (Batch(torch.ones(4, 3)),), dynamic_shapes=shapes).module()
        x = torch.randn(9, 3)
        assert torch.equal(run(Batch(x))["out"].images, x * 2)
    for shapes in ({"batch": {"other": {0: rows}}}, (({0: rows},),), ({0: rows},)):
        with pytest.raises(TypeError, match="has a different structure"):
            torch.export.export(model, (Batch(torch.ones(4, 3)),), dynamic_shapes=shapes)


def test_classes_that_are_not_registered_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Other:
        x: Any

    class Keyed(dict):  # type: ignore[type-arg]
        pass

    for value in (Other(torch.ones(2)), Keyed(x=torch.ones(2))):
        with pytest.raises(
            TypeError, match=r"of type \w+, which a program cannot hold(.|\n)*register_dataclass"
        ):
            torch.export.export(OfBatches(), (value,))
    torch.utils._pytree.register_pytree_node(Keyed, lambda d: ([], object()), lambda parts, context: Keyed())
    with pytest.raises(TypeError, match=r"cannot be represented in JSON(.|\n)*to_dumpable_context"):
        torch.export.export(OfBatches(), (Keyed(),))
    torch.export.save(torch.export.export(OfBatches(), (Batch(torch.ones(2)),)), tmp_path / "m")
    run = torch.export.load(tmp_path / "m").module()
    monkeypatch.delitem(torch.utils._pytree.SUPPORTED_NODES, Named)
    monkeypatch.delitem(rushlight_core.pytree._IN_FILES, Named)
    with pytest.raises(ValueError, match=r"class '.*Named' is not registered(.|\n)*hint"):
        run(Batch(torch.ones(2)))


@pytest.mark.parametrize(
    "function",
    [
        lambda self, x: x * random.random(),
        lambda self, x: x if random.random() < 2 else -x,
        lambda self, x: x * float(np.random.rand()),
    ],
)
@pytest.mark.parametrize("sizes", [None, ({0: torch.export.Dim("rows")},)])
def test_random_numbers_of_python_are_refused(function: Any, sizes: Any) -> None:
    before = random.getstate(), np.random.get_state()
    with pytest.raises(
        NotImplementedError, match=r"draws numbers from '(numpy\.)?random'(.|\n)*hint: .*torch\.rand"
    ):
        torch.export.export(Stateful(function), (torch.ones(4, 3),), dynamic_shapes=sizes)
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1][1])
    assert np.random.get_state()[2] == before[1][2]


def test_classes_as_vectors() -> None:
    model = Stateful(lambda self, x: F.one_hot(x, 5))
    program = torch.export.export(
        model, (torch.tensor([1, 2]),), dynamic_shapes=({0: torch.export.Dim("n")},)
    )
    classes = torch.tensor([4, 0, 2])
    assert torch.equal(program.module()(classes), F.one_hot(classes, 5))
    for wrong in (5, -1):
        with pytest.raises(RuntimeError, match="out of range"):
            program.module()(torch.tensor([0, wrong]))


def test_operators_of_custom_op_are_refused_by_name() -> None:
    @torch.library.custom_op("test_export::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * 2)

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return doubled(x)

    with pytest.raises(
        NotImplementedError, match=r"test_export::doubled, an operator of library\.custom_op,.* cannot"
    ):
        torch.export.export(Model(), (torch.ones(3),))
    assert torch.equal(Model()(torch.ones(3)), torch.full((3,), 2.0))


def test_tensor_of_a_tensor_is_captured_as_a_copy() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.tensor(x).add_(1)

    program = torch.export.export(Model(), (torch.zeros(3),))
    x = torch.ones(3)
    assert torch.equal(program.module()(x), torch.full((3,), 2.0))
    assert torch.equal(x, torch.ones(3))


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("share_memory_", lambda x: x.share_memory_()),
        (r"copy\.deepcopy", copy.deepcopy),
        ("pickle", pickle.dumps),
    ],
)
def test_copies_by_python_are_refused_by_name(name: str, function: Any) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            function(x * 1)
            return x * 2

    with pytest.raises(RuntimeError, match=name + r".*: reads the values of a tensor(.|\n)*clone\(\)"):
        torch.export.export(Model(), (torch.ones(3),))


def test_a_capture_inside_of_vmap_is_refused() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    def inside(x: torch.Tensor) -> torch.Tensor:
        torch.export.export(Model(), (x,))
        return x

    with pytest.raises(NotImplementedError, match="a batched tensor, because the capture is inside of vmap"):
        torch.vmap(inside)(torch.ones(2, 3))


MASKS = [
    [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]],
    [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    [[1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
]


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
def test_padded_encoders(checks: bool, numbers: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), mask_check=checks).eval()
    masks = [torch.tensor(mask).bool() for mask in MASKS]
    if numbers:
        masks = [torch.zeros(2, 5).masked_fill(mask, -2.0) for mask in masks]
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        for example in masks:
            run = torch.export.export(encoder, (x,), {"src_key_padding_mask": example}).module()
            for mask in masks:
                given = torch.randn(2, 5, 8)
                assert bits(run(given, src_key_padding_mask=mask)) == bits(
                    encoder(given, src_key_padding_mask=mask)
                )


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 4}, {"mode": "sum"}], ids=str)
def test_bags_of_any_sizes(options: dict[str, Any], last: bool) -> None:
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(10, 3, include_last_offset=last, **options)
    rows, more = torch.tensor([1, 2, 4, 4, 9, 3]), [6] if last else []
    programs = [torch.export.export(bag, (rows, torch.tensor([0, 2, *more])))]
    programs.append(programs[0].simplify())
    for program in programs:
        run = program.module()
        for second in range(7):
            offsets = torch.tensor([0, second, *more])
            assert bits(run(rows, offsets)) == bits(bag(rows, offsets))
        for wrong in ([1, 2, *more], [-1, 2, *more], [0, 7, *more], [0, 2, 5], [0, 2, 7]):
            if last or len(wrong) == 2:
                for call in (bag, run):
                    with pytest.raises((RuntimeError, IndexError), match=r"offsets|index|bags"):
                        call(rows, torch.tensor(wrong))
    sizes = (None if last else {0: torch.export.Dim("rows")}, {0: torch.export.Dim("bags")})
    run = torch.export.export(bag, (rows, torch.tensor([0, 2, *more])), dynamic_shapes=sizes).module()
    rows = rows if last else torch.randint(0, 10, (9,))
    offsets = torch.tensor([0, 3, 3, 5, 6])
    assert bits(run(rows, offsets)) == bits(bag(rows, offsets))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_one_size(mode: str) -> None:
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(10, 3, mode=mode)
    run = torch.export.export(bag, (torch.randint(0, 10, (4, 5)),)).module()
    rows = torch.randint(0, 10, (4, 5))
    assert bits(run(rows)) == bits(bag(rows))
