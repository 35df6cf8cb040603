from __future__ import annotations

import gc
import pickle
import traceback
import weakref

import pytest

import rushlight_core as core
from rushlight_nn import Linear, Module, Sequential


class Raises(Module):
    def forward(self, x):
        raise ValueError("wrong")


class Holder(Module):
    def __init__(self, inner):
        super().__init__()
        self.layers = inner

    def forward(self, x):
        return self.layers(x)


def notes(call):
    with pytest.raises(Exception) as info:
        call()
    return getattr(info.value, "__notes__", [])


def test_the_path_of_the_module_that_failed():
    net = Holder(Sequential(Linear(2, 2), Sequential(Raises())))
    assert notes(lambda: net(core.zeros(1, 2))) == ["in Holder.layers.1.0 (Raises)"]
    assert notes(lambda: Raises()(None)) == ["in Raises"]


def test_the_path_appears_in_the_traceback():
    try:
        Holder(Linear(2, 2))(core.zeros(1, 3))
    except Exception as error:
        text = "".join(traceback.format_exception(error))
    assert text.endswith("in Holder.layers (Linear)\n")


def test_a_grandchild_called_directly_gets_its_whole_path():
    class Skips(Holder):
        def forward(self, x):
            return self.layers[1][0](x)

    net = Skips(Sequential(Linear(1, 1), Sequential(Raises())))
    assert notes(lambda: net(1)) == ["in Skips.layers.1.0 (Raises)"]


def test_a_module_that_is_no_descendant_gets_a_note_of_its_own():
    stranger = Raises()

    class Caller(Module):
        def forward(self, x):
            return stranger(x)

    assert notes(lambda: Holder(Caller())(1)) == ["in Raises", "in Holder.layers (Caller)"]


def test_recursion_is_noted_once():
    class Recursive(Module):
        def forward(self, depth):
            if depth == 0:
                raise ValueError
            return self(depth - 1)

    assert notes(lambda: Holder(Recursive())(3)) == ["in Holder.layers (Recursive)"]


def test_errors_in_hooks_are_noted_too():
    net = Holder(Linear(1, 1))

    def hook(module, args):
        raise KeyError("x")

    net.layers.register_forward_pre_hook(hook)
    assert notes(lambda: net(core.zeros(1, 1))) == ["in Holder.layers (Linear)"]


def test_other_notes_stay():
    class Notes(Module):
        def forward(self, x):
            error = ValueError()
            error.add_note("mine")
            raise error

    assert notes(lambda: Holder(Notes())(1)) == ["mine", "in Holder.layers (Notes)"]


def test_a_pickled_error_does_not_carry_the_model():
    try:
        Holder(Raises())(1)
    except ValueError as error:
        data = pickle.dumps(error)
    assert len(data) < 500
    copy = pickle.loads(data)
    assert copy.__notes__ == ["in Holder.layers (Raises)"]
    assert type(copy.__notes__[0]) is str


def test_a_note_does_not_keep_the_model_alive():
    net = Holder(Raises())
    kept = None
    try:
        net(1)
    except ValueError as error:
        kept = error.with_traceback(None)
    reference = weakref.ref(net)
    del net
    gc.collect()
    assert reference() is None
    assert kept.__notes__ == ["in Holder.layers (Raises)"]


def test_exits_are_left_alone():
    class Stops(Module):
        def forward(self, x):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as info:
        Stops()(1)
    assert not hasattr(info.value, "__notes__")


@pytest.mark.parametrize("arguments", [("cpu",), ("cpu", core.float64), (core.ones(1),)])
def test_moving_from_meta_names_to_empty(arguments):
    layer = Linear(2, 2, device="meta")
    with pytest.raises(
        NotImplementedError, match=r"no data! Please use torch.nn.Module.to_empty\(\) instead of torch"
    ):
        layer.to(*arguments)
    assert layer.to("meta").to(core.float64).weight.dtype == core.float64
    assert layer.to_empty(device="cpu").to("cpu").weight.device.type == "cpu"
