"""Overhead: calls on tiny tensors, whose time is the cost of the library and not of the arithmetic.

Operands have sixteen float32 elements unless a name says otherwise. The targets are ratios to PyTorch 2.13 on one thread.
"""

from __future__ import annotations

from . import Row

GEOMETRIC_MEAN_TARGET = 0.30

_PAIR = "a = torch.tensor(data(16)); b = torch.tensor(data(16))"
_NUMPY_PAIR = "a = data(16); b = data(16)"
_SQUARES = "a = torch.tensor(data(8, 8)); b = torch.tensor(data(8, 8))"
_LINEAR = """
F = torch.nn.functional
x, weight, bias = torch.tensor(data(4, 4)), torch.tensor(data(4, 4)), torch.tensor(data(4))
"""

# The chain has twenty-five times four operators. The values stay near 1, far from infinities and denormals, for any
# number of calls.
_CHAIN = """
w = torch.tensor(data(16), requires_grad=True)
b = torch.tensor(data(16), requires_grad=True)
def chain(y):
    for _ in range(25):
        y = y * w
        y = y + b
        y = y.relu()
        y = y * 0.5
    return y
def step():
    w.grad = b.grad = None
    chain(b).sum().backward()
"""

_MLP = """
nn, F = torch.nn, torch.nn.functional
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
fill(model)
x, target = torch.tensor(data(16, 16)), torch.tensor(data(16, 16))
"""

# Gradients are added in place: later steps use the memory of the first step, as in gradient accumulation.
_FORWARD_BACKWARD = (
    _MLP
    + """
def step():
    F.mse_loss(model(x), target).backward()
"""
)

_SGD_STEP = (
    _MLP
    + """
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
def step():
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
"""
)

ROWS: tuple[Row, ...] = (
    Row("a + b", "a + b", _PAIR, target=0.22, numpy="a + b", numpy_setup=_NUMPY_PAIR),
    Row("a * 2.0", "a * 2.0", _PAIR, target=0.12, numpy="a * 2.0", numpy_setup=_NUMPY_PAIR),
    Row(
        "a + b, with grad",
        "a + b",
        "a = torch.tensor(data(16), requires_grad=True); b = torch.tensor(data(16))",
        target=0.30,
    ),
    Row(
        "a.add_(b)",
        "a.add_(b)",
        "a = torch.tensor(data(16)); b = torch.tensor(data(16))",
        target=0.25,
        numpy="np.add(a, b, out=a)",
        numpy_setup=_NUMPY_PAIR,
    ),
    Row("a.view(4, 4)", "a.view(4, 4)", _PAIR, target=0.25, numpy="a.reshape(4, 4)", numpy_setup=_NUMPY_PAIR),
    Row(
        "a[1]",
        "a[1]",
        "a = torch.tensor(data(4, 4))",
        target=0.30,
        numpy="a[1]",
        numpy_setup="a = data(4, 4)",
    ),
    Row(
        "mm 8x8",
        "torch.mm(a, b)",
        _SQUARES,
        target=0.40,
        numpy="np.matmul(a, b)",
        numpy_setup="a = data(8, 8); b = data(8, 8)",
    ),
    Row(
        "F.linear",
        "F.linear(x, weight, bias)",
        _LINEAR,
        target=0.30,
        numpy="x @ weight.T + bias",
        numpy_setup="x, weight, bias = data(4, 4), data(4, 4), data(4)",
    ),
    Row("sum", "a.sum()", _PAIR, target=0.30, numpy="a.sum()", numpy_setup=_NUMPY_PAIR),
    Row("softmax", "torch.softmax(a, -1)", _PAIR, target=0.50),
    Row(
        "cat",
        "torch.cat([a, b])",
        _PAIR,
        target=0.40,
        numpy="np.concatenate([a, b])",
        numpy_setup=_NUMPY_PAIR,
    ),
    Row("chain of 100, forward + backward", "step()", _CHAIN, result="[step(), w.grad, b.grad]", target=0.30),
    Row(
        "chain of 1000, forward + backward",
        "step()",
        _CHAIN.replace("range(25)", "range(250)"),
        result="[step(), w.grad, b.grad]",
        target=0.30,
    ),
    Row("MLP forward", "model(x)", _MLP, target=0.40),
    Row(
        "MLP forward + backward",
        "step()",
        _FORWARD_BACKWARD,
        target=0.30,
        result="[step()] + [p.grad for p in model.parameters()]",
    ),
    Row("MLP training step, SGD", "step()", _SGD_STEP, result="[step(), model(x)]", target=0.30),
)
