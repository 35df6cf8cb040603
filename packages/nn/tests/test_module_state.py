from __future__ import annotations

import gc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rushlight_core as core
from rushlight_nn import LSTM, BatchNorm1d, Linear, Module, Parameter, Sequential


def model():
    return Sequential(Linear(2, 3), BatchNorm1d(3), Linear(3, 1, bias=False))


KEYS = [
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "1.running_mean",
    "1.running_var",
    "1.num_batches_tracked",
    "2.weight",
]


def test_state_dict_names_parameters_and_persistent_buffers():
    net = model()
    net.register_buffer("scratch", core.ones(1), persistent=False)
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == KEYS
    assert not any(value.requires_grad for value in state.values())
    assert list(net.state_dict(prefix="p.")) == ["p." + key for key in KEYS]
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight
    destination = {}
    assert net.state_dict(destination=destination) is destination


def test_state_dict_shares_memory():
    net = model()
    state = net.state_dict()
    with core.no_grad():
        net[0].weight.fill_(7.0)
    assert float(state["0.weight"].min()) == 7.0


def test_load_copies_values():
    ours, theirs = model(), model()
    state = theirs.state_dict()
    before = ours[0].weight
    result = ours.load_state_dict(state)
    assert result.missing_keys == []
    assert result.unexpected_keys == []
    assert repr(result) == "<All keys matched successfully>"
    assert ours[0].weight is before
    for key, value in ours.state_dict().items():
        assert core.equal(value, state[key])
    with core.no_grad():
        theirs[0].weight.fill_(9.0)
    assert float(ours[0].weight.detach().max()) < 9.0


def test_load_converts_to_the_modules_dtype():
    ours, theirs = model(), model().double()
    ours.load_state_dict(theirs.state_dict())
    assert ours[0].weight.dtype == core.float32
    assert core.equal(ours[0].weight, theirs[0].weight.float())


def test_assign_takes_the_tensors_themselves():
    ours, theirs = model(), model().double().requires_grad_(False)
    state = theirs.state_dict()
    ours[0].weight.requires_grad_(False)
    ours.load_state_dict(state, assign=True)
    assert ours[0].weight.dtype == core.float64
    assert isinstance(ours[0].weight, Parameter)
    assert ours[0].weight.data_ptr() == state["0.weight"].data_ptr()
    assert ours[0].weight is ours[0]._parameters["weight"]
    assert not ours[0].weight.requires_grad
    assert ours[0].bias.requires_grad
    assert ours[1].running_mean is ours[1]._buffers["running_mean"]
    assert ours[1].running_mean.data_ptr() == state["1.running_mean"].data_ptr()


def values(net):
    return {key: value.clone() for key, value in net.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(core.equal(a[key], b[key]) for key in a)


def test_a_state_that_does_not_fit_changes_nothing_and_is_described():
    ours = model()
    before = values(ours)
    state = model().state_dict()
    del state["1.running_mean"]
    state["0.weights"] = state.pop("0.weight")
    state["2.weight"] = core.zeros(1, 4)
    state["1.bias"] = [1, 2, 3]
    with pytest.raises(RuntimeError) as info:
        ours.load_state_dict(state)
    text = str(info.value)
    assert 'Missing key(s) in state_dict: "0.weight", "1.running_mean"' in text
    assert 'Unexpected key(s) in state_dict: "0.weights"' in text
    assert (
        "size mismatch for 2.weight: copying a param with shape torch.Size([1, 4]) from checkpoint, "
        "the shape in current model is torch.Size([1, 3])." in text
    )
    assert "1.bias: got list, needs a tensor" in text
    assert "hint: does '0.weights' in the state correspond to '0.weight' in the module?" in text
    assert same(values(ours), before)
    assert "0.weights" in state
    with pytest.raises(RuntimeError, match="size mismatch"):
        ours.load_state_dict(state, strict=False)
    assert same(values(ours), before)


def test_states_of_wrapped_models_get_a_hint():
    state = {"module." + key: value for key, value in model().state_dict().items()}
    with pytest.raises(RuntimeError, match=r"remove the prefix 'module\.'"):
        model().load_state_dict(state)


def test_not_strict_loads_what_fits():
    ours = model()
    result = ours.load_state_dict({"2.weight": core.full((1, 3), 5.0), "other": core.ones(1)}, strict=False)
    assert result.missing_keys == [key for key in KEYS[:-1] if key != "1.num_batches_tracked"]
    assert result.unexpected_keys == ["other"]
    assert float(ours[2].weight.detach().sum()) == 15.0


def test_the_count_of_batches_is_missed_from_version_2_on():
    state = model().state_dict()
    assert state._metadata["1"] == {"version": 2}
    del state["1.num_batches_tracked"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "1\.num_batches_tracked"'):
        model().load_state_dict(state)
    ours = model()
    ours[1].num_batches_tracked.fill_(3)
    assert ours.load_state_dict(dict(state)) == ([], [])
    assert int(ours[1].num_batches_tracked) == 3


@given(missing=st.sets(st.sampled_from(KEYS)), extra=st.sets(st.sampled_from(["0.x", "3.y", "z", "1.a.b"])))
def test_every_misfit_is_reported_exactly_once(missing, extra):
    ours = model()
    before = values(ours)
    state = model().state_dict()
    for key in KEYS:
        if key in missing:
            del state[key]
        else:
            state[key] = state[key] + 1
    state.update((key, core.ones(1)) for key in extra)
    if not missing and not extra:
        assert ours.load_state_dict(state) == ([], [])
        return
    with pytest.raises(RuntimeError):
        ours.load_state_dict(state)
    assert same(values(ours), before)
    result = ours.load_state_dict(state, strict=False)
    assert sorted(result.missing_keys) == sorted(missing)
    assert sorted(result.unexpected_keys) == sorted(extra)
    after = values(ours)
    for key in KEYS:
        assert core.equal(after[key], before[key] if key in missing else state[key])


def test_only_a_mapping_can_be_loaded():
    with pytest.raises(TypeError, match=r"got str.*\n.*load\(path\)"):
        model().load_state_dict("model.ckpt")


def test_extra_state():
    class Extra(Module):
        def __init__(self):
            super().__init__()
            self.epoch = 0

        def get_extra_state(self):
            return {"epoch": self.epoch}

        def set_extra_state(self, state):
            self.epoch = state["epoch"]

    ours, theirs = Sequential(Extra()), Sequential(Extra())
    theirs[0].epoch = 4
    state = theirs.state_dict()
    assert state["0._extra_state"] == {"epoch": 4}
    ours.load_state_dict(state)
    assert ours[0].epoch == 4
    with pytest.raises(RuntimeError, match="_extra_state"):
        Sequential(Linear(1, 1)).load_state_dict(state)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0\._extra_state"'):
        ours.load_state_dict({})


def test_an_older_layout_can_be_read():
    class Renamed(Module):
        _version = 2

        def __init__(self):
            super().__init__()
            self.weight = Parameter(core.zeros(2))

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", 1) < 2:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    net = Sequential(Renamed())
    assert net.state_dict()._metadata["0"] == {"version": 2}
    old = {"0.w": core.ones(2)}
    net.load_state_dict(old)
    assert float(net[0].weight.detach().sum()) == 2.0
    assert list(old) == ["0.w"]  # the caller's dictionary is not changed


def test_state_dict_hooks():
    net, calls = model(), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep_vars: calls.append((prefix, keep_vars)))

    def drop(module, state, prefix, metadata):
        del state["2.weight"]

    net.register_state_dict_post_hook(drop)
    assert list(net.state_dict()) == KEYS[:-1]
    assert calls == [("", False)]
    net._register_state_dict_hook(lambda m, state, prefix, meta: {"only": state})
    assert list(net.state_dict()) == ["only"]


def test_load_state_dict_hooks():
    net = model()
    state = model().state_dict()
    renamed = {key.replace("2.", "last."): value for key, value in state.items()}

    def rename(module, state, prefix, *rest):
        assert module is net
        state["2.weight"] = state.pop("last.weight")

    handle = net.register_load_state_dict_pre_hook(rename)
    net.load_state_dict(renamed)
    assert "last.weight" in renamed
    handle.remove()
    with pytest.raises(RuntimeError):
        net.load_state_dict(renamed)

    def forgive(module, keys):
        keys.missing_keys.clear()
        keys.unexpected_keys.clear()

    handle = net.register_load_state_dict_post_hook(forgive)
    net.load_state_dict(renamed)
    assert core.equal(net[0].weight, state["0.weight"])
    handle.remove()
    net.register_load_state_dict_post_hook(lambda module, keys: None)
    with pytest.raises(RuntimeError, match="the entries that fit were loaded"):
        net.load_state_dict({**renamed, "0.weight": core.zeros_like(state["0.weight"])})
    assert not net[0].weight.any()


@pytest.mark.parametrize("assign", [False, True])
def test_one_element_fits_a_tensor_without_dimensions(assign):
    module = Module()
    module.scale = Parameter(core.zeros(()))
    module.register_buffer("count", core.zeros((), dtype=core.int64))
    state = {"scale": core.tensor([2.5]), "count": core.tensor([7])}
    module.load_state_dict(state, assign=assign)
    assert module.scale.shape == module.count.shape == ()
    assert (module.scale.item(), module.count.item()) == (2.5, 7)
    assert isinstance(module.scale, Parameter)
    for shape in ((2,), (0,), (1, 1)):
        with pytest.raises(RuntimeError, match="size mismatch for scale"):
            module.load_state_dict({**state, "scale": core.zeros(shape)})


class Built(Module):
    """A module whose child is built when its extra state is set."""

    def __init__(self, size: int | None = None, after: int = 1):
        super().__init__()
        self.size = size
        self.scale = Parameter(core.ones(1))
        self.child = None if size is None else Linear(size, 1, bias=False)
        self.after = Linear(after, 1, bias=False)

    def get_extra_state(self):
        return self.size

    def set_extra_state(self, size):
        self.size = size
        self.scale_before_extra_state = self.scale.item()
        self.child = None if size is None else Linear(size, 1, bias=False)


@pytest.mark.parametrize("size", [None, 2, 3])
@pytest.mark.parametrize("strict", [True, False])
def test_extra_state_is_set_before_the_children_are_loaded(size, strict):
    ours, theirs = Sequential(Built(size)), Sequential(Built(3))
    with core.no_grad():
        theirs[0].scale.fill_(2.0)
    result = ours.load_state_dict(theirs.state_dict(), strict=strict)
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert core.equal(ours[0].child.weight, theirs[0].child.weight)
    assert ours[0].scale_before_extra_state == 2.0


def test_error_of_a_state_with_extra_state_says_what_was_loaded():
    theirs = Built(3)
    ours = Built(after=2)
    with pytest.raises(
        RuntimeError, match=r"the entries up to '_extra_state' were loaded\n  size mismatch for after"
    ):
        ours.load_state_dict(theirs.state_dict())
    assert ours.size == 3
    # No extra state is set after an error.
    ours = Sequential(Linear(1, 1), Built())
    with pytest.raises(RuntimeError, match="nothing was loaded"):
        ours.load_state_dict(Sequential(Linear(2, 1), theirs).state_dict())
    with pytest.raises(RuntimeError, match="nothing was loaded"):
        ours.load_state_dict({"1." + key: value for key, value in theirs.state_dict().items()})
    assert ours[1].size is None


def test_order_of_extra_state_and_hooks():
    calls = []

    class Extra(Built):
        def set_extra_state(self, size):
            calls.append("set_extra_state")

    ours = Extra(2)
    ours.child.register_load_state_dict_pre_hook(lambda *arguments: calls.append("pre-hook of child"))
    ours.child.register_load_state_dict_post_hook(lambda *arguments: calls.append("post-hook of child"))
    ours.load_state_dict(Extra(2).state_dict())
    assert calls == ["set_extra_state", "pre-hook of child", "post-hook of child"]


def test_loading_creates_no_reference_cycle():
    layer = Sequential(Linear(2, 2), LSTM(2, 2))
    state = layer.state_dict()
    gc.collect()
    gc.disable()
    try:
        layer.load_state_dict(state)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_hooks_get_the_part_of_the_state_that_belongs_to_their_module():
    """As in PyTorch. What a hook changes is seen by the module and its descendants only."""
    seen: list[list[str]] = []

    def hook(module, state, prefix, *rest):
        seen.append(list(state))
        state[prefix + "0.weight"] = state.pop(prefix + "0.old")

    class Reads(Linear):
        def _load_from_state_dict(self, state_dict, prefix, *rest):
            seen.append(list(state_dict))
            super()._load_from_state_dict(state_dict, prefix, *rest)

    inner = Sequential(Linear(1, 1, bias=False), Sequential(Reads(1, 1, bias=False)))
    model = Sequential(inner, Linear(1, 1, bias=False), Reads(1, 1, bias=False))
    model[0].register_load_state_dict_pre_hook(hook)
    values = {"0.0.old": 1.0, "0.1.0.weight": 2.0, "1.weight": 3.0, "2.weight": 4.0}
    result = model.load_state_dict({name: core.full((1, 1), value) for name, value in values.items()})
    assert not result.missing_keys
    assert not result.unexpected_keys
    assert [p.item() for p in model.parameters()] == [1.0, 2.0, 3.0, 4.0]
    assert seen == [["0.0.old", "0.1.0.weight"], ["0.1.0.weight"], ["2.weight"]]
