"""jit.trace, save and load: traced modules run as Python and are saved as programs."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rest = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU())
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.count.add_(1)
        return self.rest(x) * self.weight

    def twice(self, x: Any) -> Any:
        return 2 * self.forward(x)


def test_what_is_traced_is_saved_and_loaded(tmp_path: Path) -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    traced = torch.jit.trace(model, x)
    assert int(model.count) == 0  # the trace has not changed the buffer
    traced.save(str(tmp_path / "model.rl"))
    loaded = torch.jit.load(str(tmp_path / "model.rl"))
    x = torch.randn(5, 3)
    assert torch.equal(loaded(x), model(x))
    assert isinstance(traced, torch.jit.ScriptModule)
    assert isinstance(loaded, torch.jit.ScriptModule)
    assert loaded.eval().train() is loaded
    wanted = {name: t for name, t in model.state_dict().items() if "num_batches" not in name}
    state = loaded.state_dict()
    assert set(state) == set(wanted)
    assert all(torch.equal(state[name], t) for name, t in wanted.items() if name != "count")
    assert " = linear(" in loaded.code
    assert traced.code == loaded.code
    with pytest.raises(ValueError, match="5"):
        loaded(torch.randn(6, 3))


def test_it_runs_in_a_process_without_the_source(tmp_path: Path) -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    torch.jit.save(torch.jit.trace(model, x), tmp_path / "model.rl")
    torch.save({"x": x, "y": model(x)}, tmp_path / "values")
    code = (
        "import sys, rushlight as torch; run = torch.jit.load(sys.argv[1]); v = torch.load(sys.argv[2]);"
        "assert torch.equal(run(v['x']), v['y']); print('same')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.rl", tmp_path / "values"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "same\n"


def test_a_traced_module_is_the_module_in_this_process() -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    traced = torch.jit.trace(model, x)
    y = torch.randn(7, 3)
    assert torch.equal(traced(y), model(y))
    assert list(traced.state_dict()) == list(model.state_dict())
    assert all(a is b for a, b in zip(traced.parameters(), model.parameters(), strict=True))
    assert torch.equal(traced.twice(y), model.twice(y))
    assert traced.original_name == "Model"
    traced.train()
    assert model.training
    assert model.rest[1].training
    traced(y).sum().backward()
    assert model.weight.grad is not None
    traced.double()
    assert model.count.dtype is torch.float64
    copied = copy.deepcopy(traced)
    assert torch.equal(copied.eval()(y.double()), traced.eval()(y.double()))
    assert copied.weight is not traced.weight
    assert torch.jit.trace(traced, x) is traced
    # The tables of parameters and buffers remain the same objects.
    for module in (traced, copied):
        module.load_state_dict({name: t + 1 for name, t in module.state_dict().items()})
        module.register_buffer("late", torch.ones(1))
        module._original.count = torch.full((), 7.0)
        assert float(module.count) == float(module.state_dict()["count"]) == 7
        assert "late" in module._original.state_dict()
    again = pickle.loads(pickle.dumps(traced))
    assert torch.equal(again(y.double()), traced(y.double()))
    assert "late" in again._original.state_dict()


def test_what_is_saved_is_what_the_module_is_then() -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    traced = torch.jit.trace(model, x)
    with torch.no_grad():
        model.weight.fill_(3.0)
    file = io.BytesIO()
    traced.save(file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(x), model(x))
    traced.double()
    with pytest.raises(RuntimeError, match="dtype"):
        traced.save(io.BytesIO())


def test_functions_are_traced() -> None:
    def function(x: Any, y: Any) -> Any:
        """Adds."""
        return x + 2 * y

    x, y = torch.randn(3), torch.randn(3)
    traced = torch.jit.trace(function, (x, y))
    assert torch.equal(traced(x, y), function(x, y))
    assert (traced.__name__, traced.__doc__) == ("function", "Adds.")
    assert isinstance(traced, torch.jit.ScriptFunction)
    file = io.BytesIO()
    traced.save(file, _extra_files={"notes": "a", "more": b"b"})
    file.seek(0)
    extra: dict[str, Any] = {"notes": ""}
    loaded = torch.jit.load(file, map_location="cpu", _extra_files=extra)
    assert extra == {"notes": b"a"}
    assert torch.equal(loaded(x, y), function(x, y))
    again = io.BytesIO()
    torch.jit.save(loaded, again)
    again.seek(0)
    assert torch.equal(torch.jit.load(again)(x, y), function(x, y))
    by_name = torch.jit.trace(function, example_kwarg_inputs={"x": x, "y": y})
    file = io.BytesIO()
    torch.jit.save(by_name, file)
    file.seek(0)
    assert torch.equal(torch.jit.load(file)(x=x, y=y), function(x, y))


def test_methods_are_traced() -> None:
    model, x = Model().eval(), torch.randn(5, 3)
    traced = torch.jit.trace_module(model, {"twice": x})
    file = io.BytesIO()
    traced.save(file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert torch.equal(loaded(x), model.twice(x))
    assert "weight" in dict(loaded.named_parameters())
    both = torch.jit.trace_module(model, {"forward": x, "twice": x})
    with pytest.raises(NotImplementedError, match="2 methods were traced"):
        both.save(io.BytesIO())
    with pytest.raises(AttributeError, match="missing"):
        torch.jit.trace_module(model, {"missing": ()})
    with pytest.raises(AttributeError, match="must be a dict"):
        torch.jit.trace_module(model, x)


def test_what_cannot_be_saved_warns_and_runs() -> None:
    def function(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.warns(torch.jit.TracerWarning, match=r"function runs as Python(.|\n)*test_jit\.py:\d+"):
        traced = torch.jit.trace(function, torch.ones(2))
    assert torch.equal(traced(-torch.ones(2)), torch.ones(2))
    with pytest.raises(RuntimeError, match="reads the values"):
        traced.save(io.BytesIO())
    with pytest.raises(ZeroDivisionError):
        torch.jit.trace(lambda x: 1 / 0, torch.ones(2))
    with pytest.raises(RuntimeError, match="needs either example_inputs"):
        torch.jit.trace(function)
    with pytest.raises(TypeError, match="needs a function or a module, got int"):
        torch.jit.trace(3, torch.ones(2))
    with pytest.raises(NotImplementedError, match="Linear was not traced"):
        torch.jit.save(torch.jit.script(nn.Linear(2, 2)), io.BytesIO())


def test_is_tracing_is_true_while_a_program_is_recorded() -> None:
    seen: list[bool] = []
    traced = torch.jit.trace(lambda x: (seen.append(torch.jit.is_tracing()), x + 1)[1], torch.ones(2))
    traced(torch.ones(2))
    traced.save(io.BytesIO())
    assert seen == [True, False, True]
    assert not torch.jit.is_tracing()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(lambda x: x.item(), torch.ones(()))
    assert not torch.jit.is_tracing()


def saved_and_loaded(module: Any, x: Any) -> Any:
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(module, x), file)
    file.seek(0)
    return torch.jit.load(file)


def test_a_loaded_module_trains_as_its_original() -> None:
    model, x = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), torch.randn(4, 2)
    loaded = saved_and_loaded(model, x)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model, loaded)]
    for _ in range(3):
        for part, optimizer in zip((model, loaded), optimizers, strict=True):
            optimizer.zero_grad()
            part(x).square().sum().backward()
            optimizer.step()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert torch.equal(saved_and_loaded(loaded, x)(x), model(x)), "it is saved with its present parameters"


def test_conversions_that_change_nothing() -> None:
    x = torch.randn(4, 2)
    loaded = saved_and_loaded(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval(), x)
    wanted = loaded(x)
    for same in (
        loaded.to("cpu"),
        loaded.cpu(),
        loaded.float(),
        loaded.to(torch.float32),
        loaded.share_memory(),
    ):
        assert same is loaded
        assert torch.equal(loaded(x), wanted)
    for convert in (loaded.half, loaded.double, lambda: loaded.to("meta")):
        with pytest.raises(NotImplementedError, match="cannot change its device, dtypes or memory format"):
            convert()
        assert torch.equal(loaded(x), wanted)


def test_a_loaded_module_runs_with_its_present_tensors(tmp_path: Path) -> None:
    model, x = nn.Linear(2, 3), torch.randn(4, 2)
    torch.jit.save(torch.jit.trace(nn.Linear(2, 3), x), tmp_path / "model")
    for assign in (False, True):
        loaded = torch.jit.load(tmp_path / "model")
        loaded.load_state_dict(model.state_dict(), assign=assign)
        assert torch.equal(loaded(x), model(x))
        loaded.weight = nn.Parameter(torch.zeros(3, 2))
        assert torch.equal(loaded(x), model.bias.expand(4, 3))
        assert torch.equal(loaded.program.state_dict["weight"], torch.zeros(3, 2))
    loaded.weight = nn.Parameter(torch.zeros(5, 2))
    with pytest.raises(ValueError, match=r"constant 'weight' must be float32\[3, 2\], got float32\[5, 2\]"):
        loaded(x)
    loaded.weight = None
    with pytest.raises(TypeError, match="the program needs the tensor 'weight', got NoneType"):
        loaded(x)


def test_a_program_that_trains_is_loaded_as_a_module() -> None:
    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = nn.Linear(3, 2)
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

        def forward(self, x: Any) -> Any:
            loss = self.model(x).square().sum()
            loss.backward()  # gradients accumulate from step to step
            self.optimizer.step()
            return loss

    step, x = Step(), torch.randn(4, 3)
    step(x)
    loaded = saved_and_loaded(step, x)
    assert not any(parameter.requires_grad for parameter in loaded.parameters())
    for _ in range(3):
        assert torch.equal(loaded(x), step(x))
    assert torch.equal(loaded.model.weight, step.model.weight)
    assert torch.equal(loaded.model.weight.grad, step.model.weight.grad)


def test_what_cannot_be_loaded(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        archive.writestr("code/__torch__.py", "")
    for file in (tmp_path / "script.pt", io.BytesIO((tmp_path / "script.pt").read_bytes())):
        with pytest.raises(NotImplementedError, match="TorchScript's files contain code"):
            torch.jit.load(file)
    with pytest.raises(ValueError, match="program"):
        torch.jit.load(io.BytesIO(b"nothing of the kind"))
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2)), file)
    for device in ("cuda", "meta"):
        file.seek(0)
        with pytest.raises(NotImplementedError, match="map_location"):
            torch.jit.load(file, map_location=device)
    file.seek(0)
    with pytest.raises(ValueError, match="contains no extra file 'notes'"):
        torch.jit.load(file, _extra_files={"notes": ""})
    file.seek(0)
    loaded = torch.jit.load(file)
    for change in (loaded.double, lambda: copy.deepcopy(loaded)):
        with pytest.raises(NotImplementedError, match="jit: a loaded program"):
            change()
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(loaded)
