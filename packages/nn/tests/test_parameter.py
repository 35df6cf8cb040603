from __future__ import annotations

import copy
import pickle

import pytest

import rushlight_core as core
from rushlight_nn import Buffer, Parameter


def test_a_parameter_is_a_tensor_that_requires_grad():
    data = core.ones(2, 3)
    p = Parameter(data)
    assert isinstance(p, core.Tensor)
    assert isinstance(p, Parameter)
    assert p.requires_grad
    assert p.is_leaf
    assert not data.requires_grad
    assert p.data_ptr() == data.data_ptr()
    assert not Parameter(core.arange(3), requires_grad=False).requires_grad
    assert tuple(Parameter().shape) == (0,)


def test_results_are_plain_tensors():
    p = Parameter(core.ones(2))
    assert type(p + 1) is core.Tensor
    assert type(p.detach()) is core.Tensor
    assert not isinstance(core.ones(2), Parameter)


@pytest.mark.parametrize("cls", [Parameter, Buffer])
@pytest.mark.parametrize("data", [3, [1.0], None.__class__])
def test_only_tensors(cls, data):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(data\): got .*, needs a tensor"):
        cls(data)


def test_repr():
    assert repr(Parameter(core.tensor([1.0, 2.0]))) == (
        "Parameter containing:\ntensor([1., 2.], requires_grad=True)"
    )


class Named(Parameter):
    pass


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies(clone):
    p = Named(core.tensor([1.0, 2.0]), requires_grad=False)
    p.tag = ["x"]
    q = clone(p)
    assert type(q) is Named
    assert core.equal(q, p)
    assert not q.requires_grad
    assert q.tag == ["x"]
    assert q.tag is not p.tag
    q.fill_(0)
    assert float(p.sum()) == 3.0
    b = clone(Buffer(core.tensor([1.0]), persistent=False))
    assert type(b) is Buffer
    assert b.persistent is False
