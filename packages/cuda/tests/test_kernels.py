"""Kernels of the plug-in, compared with those of the CPU, which use the same functors."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight.nn import functional

pytestmark = pytest.mark.usefixtures("driver")

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "every second": lambda x: x[:, ::2],
    "broadcast": lambda x: x[:1].expand(3, *x.shape),
    "misaligned": lambda x: x.reshape(-1)[1:],
}


def example(dtype: str, *shape: int) -> torch.Tensor:
    n = torch.Size(shape).numel()
    x = (torch.arange(n) * 7 % 23).reshape(shape)
    kind = getattr(torch, dtype)
    return x.to(kind) if dtype in (*INTEGERS, "bool") else ((x - 11) / 4).to(kind)


def same(device: torch.Tensor, host: torch.Tensor) -> None:
    assert device.device.type == "cuda"
    assert device.dtype == host.dtype
    assert device.shape == host.shape
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, *COMPLEX])
def test_pointwise_of_every_dtype_and_layout(dtype, layout):
    with_layout = LAYOUTS[layout]
    x, y = example(dtype, 4, 6, 5), example(dtype, 4, 6, 5).flip(1)
    same(with_layout(x.cuda()) == with_layout(y.cuda()), with_layout(x) == with_layout(y))
    if dtype != "bool":
        same(with_layout(x.cuda()) + with_layout(y.cuda()), with_layout(x) + with_layout(y))
        same(with_layout(x.cuda()) * 3, with_layout(x) * 3)
        same(with_layout(x.cuda()).add_(1), with_layout(x).clone().add_(1)) if layout != "broadcast" else None
    same(
        torch.where(with_layout(x.cuda()) == 0, with_layout(x.cuda()), with_layout(y.cuda())),
        torch.where(with_layout(x) == 0, with_layout(x), with_layout(y)),
    )


@pytest.mark.parametrize("other", ["bool", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_pointwise_of_mixed_dtypes(dtype, other):
    x, y = example(dtype, 5, 1, 3), example(other, 4, 1)
    same(x.cuda() + y.cuda(), x + y)
    same(x.cuda().lt(2), x.lt(2))


def test_pointwise_over_more_dimensions_than_a_launch_has():
    x = example("float32", *[2] * 12).permute(11, 0, 9, 2, 7, 4, 5, 6, 3, 8, 1, 10)
    y = example("float32", *[2, 1] * 6)
    same(x.cuda() + y.cuda(), x + y)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 255, 257, 70_001])
def test_sizes_around_packs_and_blocks(n):
    x = example("float32", n)
    same(x.cuda() * x.cuda() + 1, x * x + 1)
    same(x.cuda() < 0, x < 0)


@pytest.mark.parametrize("to", ["bool", *INTEGERS, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, *COMPLEX])
def test_copies_convert_between_all_dtypes(dtype, to):
    x = example(dtype, 3, 7) if dtype in ("bool", *COMPLEX) else example(dtype, 3, 7).abs()
    if dtype in COMPLEX and to not in COMPLEX:
        x = x.real.abs().to(x.dtype)
    out = torch.empty(7, 3, dtype=getattr(torch, to))
    same(out.cuda().copy_(x.cuda().t()), out.copy_(x.t()))


SHAPES = [
    ((40, 50), 0), ((40, 50), 1), ((3, 4, 5, 6), (0, 2)), ((3, 4, 5, 6), (1, 3)), ((7, 0), 1), ((2, 3000), 1),
    ((3000, 3), 0), ((1,), 0), ((300,), ()), ((9000,), ()), ((0, 3), (0, 1)), ((4, 0, 3), (0, 1)), ((4, 3, 0), (0, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "dim"), SHAPES)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bfloat16", "complex64"])
def test_sums(dtype, shape, dim):
    x = example(dtype, *shape)
    same(x.cuda().sum(dim), x.sum(dim))
    flipped = x.transpose(0, -1)
    same(flipped.cuda().sum(dim), flipped.sum(dim))


@pytest.mark.parametrize("shape", [(40, 50), (2, 3000), (3000, 3)])
def test_reductions_of_every_kind(shape):
    x = example("float32", *shape)
    for dim in (0, 1):
        same(x.cuda().argmax(dim), x.argmax(dim))
        for got, wanted in zip(x.cuda().max(dim), x.max(dim), strict=True):
            same(got, wanted)
        same(x.cuda().amax(dim), x.amax(dim))
        same(x.cuda().any(dim), x.any(dim))
        same(x.cuda().mean(dim, keepdim=True), x.mean(dim, keepdim=True))
        torch.testing.assert_close(x.cuda().var(dim).cpu(), x.var(dim), rtol=1e-6, atol=0)
    same(x.cuda().argmax(), x.argmax())


LAUNCH = 16384  # the largest number of elements of a launch in the build of the tests


def test_more_elements_than_a_launch_has(driver):
    x = example("float32", 3 * LAUNCH + 5)
    device = x.cuda()
    before = driver.fake_cuda_launches()
    y = device + 1
    assert driver.fake_cuda_launches() - before == 4
    same(y, x + 1)
    for shape in [(5, 7, LAUNCH // 9), (2, LAUNCH + 1, 3), (LAUNCH + 3, 2, 2)]:
        x = example("float32", *shape)
        y = example("float32", *reversed(shape)).permute(2, 1, 0)
        same(x.cuda() + y.cuda(), x + y)


def test_more_results_than_a_launch_has(driver):
    x = example("float32", 3 * LAUNCH + 5, 3)
    device = x.cuda()
    before = driver.fake_cuda_launches()
    y = device.sum(1)
    assert driver.fake_cuda_launches() - before == 4
    same(y, x.sum(1))
    for got, wanted in zip(device.max(1), x.max(1), strict=True):
        same(got, wanted)
    for shape in [(5, 3, LAUNCH // 2, 2), (LAUNCH // 2, 3, 5), (2, 3, 2, 3, LAUNCH + 1)]:
        x = example("float32", *shape)
        for given in (x, x.transpose(0, -1)):
            same(given.cuda().sum(1), given.sum(1))
            same(given.cuda().argmax(1), given.argmax(1))


@pytest.mark.parametrize(
    "shape", [(40, 3, 50, 3, 41), (3, 2, 4, 2, LAUNCH // 2 + 1), (LAUNCH + 1, 2, 2, 1, 2)]
)
def test_more_reduced_elements_than_a_launch_has(shape):
    """The reduced dimensions cannot be joined, so that the position of an element is computed from its index."""
    x = example("float64", *shape)
    for dims in ((0, 2, 4), (0, 1, 2)):
        same(x.cuda().sum(dims), x.sum(dims))
        same(x.cuda().mean(dims), x.mean(dims))
        same(x.cuda().amax(dims), x.amax(dims))
        torch.testing.assert_close(x.cuda().var(dims).cpu(), x.var(dims), rtol=1e-12, atol=0)
    last = torch.zeros(shape, dtype=torch.float32)
    last.view(-1)[-7:] = 2
    for one in (x, last, -last):
        given = one.permute(3, 0, 4, 2, 1)
        same(given.cuda().argmax(), given.argmax())


def test_the_first_of_equal_maxima_wins():
    for shape in [(5000,), (5000, 2), (2, 5000)]:
        x = torch.zeros(shape)
        x[..., 17 % x.shape[-1]] = 1
        for dim in range(x.ndim):
            same(x.cuda().argmax(dim), x.argmax(dim))


def test_reductions_over_more_dimensions_than_a_launch_has():
    x = example("float64", *[2] * 12)
    same(x.cuda().sum((0, 2, 4)), x.sum((0, 2, 4)))
    x = example("float64", *[2] * 20)
    for dims in (tuple(range(0, 20, 2)), tuple(range(20))):
        same(x.cuda().sum(dims), x.sum(dims))
    x = x.permute(3, 18, 1, 16, 5, 14, 7, 12, 9, 10, 0, 2, 4, 6, 8, 11, 13, 15, 17, 19)
    same(x.cuda().argmax(), x.argmax())
    assert float(torch.zeros(*[2] * 19, 0, device="cuda").sum(tuple(range(1, 20, 2))).abs().sum()) == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_more_matrices_than_the_library_takes(dtype):
    """The build of the tests limits a product to 16 matrices."""
    a, b, c = example(dtype, 40, 3, 5), example(dtype, 40, 5, 4), example(dtype, 40, 3, 4)
    close = {"rtol": 1e-2, "atol": 0.2} if itemsize(dtype) == 2 else {}
    torch.testing.assert_close(torch.bmm(a.cuda(), b.cuda()).cpu(), torch.bmm(a, b), **close)
    got = torch.baddbmm(c.cuda(), a.cuda(), b.cuda())
    torch.testing.assert_close(got.cpu(), torch.baddbmm(c, a, b), **close)


def itemsize(dtype: str) -> int:
    return torch.empty(0, dtype=getattr(torch, dtype)).element_size()


def test_the_bias_has_a_lower_alignment_than_the_matrices():
    """The library's algorithm for aligned operands would read a bias that is not aligned in the same way."""
    x, w, b = example("float16", 16, 8), example("float16", 8, 8), example("float16", 16)
    for bias in (b[:8], b[1:9], b[2:10], b[8:]):
        got = functional.linear(x.cuda(), w.cuda(), b.cuda()[bias.storage_offset() :][:8])
        torch.testing.assert_close(got.cpu(), functional.linear(x, w, bias), rtol=1e-2, atol=0.2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_parts_of_a_sum_are_added_in_the_compute_type(driver, dtype):
    x = example(dtype, 8, 8).cuda()
    x @ x
    assert (
        driver.fake_cuda_last_product_schemes() == 2
    )  # CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, or no reduction


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_random_numbers_have_the_bits_of_the_cpu(dtype):
    kind = getattr(torch, dtype)
    for make in (torch.rand, torch.randn):
        values = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(7)
            values.append(make(5, 1001, dtype=kind, device=device).cpu())
        assert values[0].equal(values[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_random_numbers_of_other_ranges_have_the_bits_of_the_cpu(dtype):
    """The product and the sum are one fused multiply-add, whatever the flags of the two compilers."""
    kind = getattr(torch, dtype)
    for draw in (lambda x: x.uniform_(-0.37, 1.91), lambda x: x.normal_(0.37, 1.91)):
        values = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(7)
            values.append(draw(torch.empty(5, 1001, dtype=kind, device=device)).cpu())
        assert values[0].equal(values[1])


def test_random_integers_and_masks_have_the_bits_of_the_cpu():
    calls = [
        lambda d: torch.randint(-5, 1000, (301,), device=d),
        lambda d: torch.empty(77, device=d).bernoulli_(0.3),
        lambda d: torch.empty(6, 5, device=d).t().uniform_(),
        lambda d: functional.dropout(torch.ones(3, 999, device=d), 0.3),
        lambda d: functional.dropout(torch.ones(999, device=d, dtype=torch.float64), 0.5),
    ]
    for call in calls:
        torch.manual_seed(3)
        host = call("cpu")
        torch.manual_seed(3)
        same(call("cuda"), host)


def test_new_tensors():
    for dtype in (torch.float32, torch.int64, torch.bfloat16, torch.complex64, torch.bool):
        for make in (torch.zeros, torch.ones):
            same(make(3, 4, dtype=dtype, device="cuda"), make(3, 4, dtype=dtype))
    same(torch.full((2, 3), -1.5, device="cuda"), torch.full((2, 3), -1.5))
    same(torch.arange(3, 20, 4, device="cuda"), torch.arange(3, 20, 4))
    same(torch.arange(0, 1, 0.125, device="cuda"), torch.arange(0, 1, 0.125))
    same(torch.linspace(0, 1, 11, device="cuda"), torch.linspace(0, 1, 11))
    same(torch.eye(4, 6, device="cuda"), torch.eye(4, 6))


# --- products ---


@pytest.mark.parametrize("dtype", FLOATS)
def test_products(dtype):
    a, b, c = example(dtype, 5, 7), example(dtype, 7, 4), example(dtype, 5, 4)
    pairs = [(a, b), (a.t().contiguous().t(), b), (a, b.t().contiguous().t()), (a[::2], b), (a[:, ::2], b[::2]), (a[:1], b),
             (a, b[:, :1]), (a[:, :1], b[:1]), (a[:0], b)]  # fmt: skip
    close = {"rtol": 1e-2 if dtype in ("float16", "bfloat16") else 1e-5, "atol": 1e-5}
    for x, y in pairs:
        torch.testing.assert_close((x.cuda() @ y.cuda()).cpu(), x @ y, **close)
    for addend in (c, c[0], c[:, :1]):
        got = torch.addmm(addend.cuda(), a.cuda(), b.cuda(), beta=2, alpha=0.5).cpu()
        torch.testing.assert_close(got, torch.addmm(addend, a, b, beta=2, alpha=0.5), **close)
    torch.testing.assert_close((a.cuda() @ b[:, 0].cuda()).cpu(), a @ b[:, 0], **close)
    batch = example(dtype, 3, 5, 7), example(dtype, 3, 4, 7).transpose(1, 2)
    torch.testing.assert_close(torch.bmm(batch[0].cuda(), batch[1].cuda()).cpu(), torch.bmm(*batch), **close)
    same(torch.mm(a[:, :0].cuda(), b[:0].cuda()), torch.mm(a[:, :0], b[:0]))
    for beta in (0, 1, 2.5):
        got = torch.addmm(c.cuda(), a[:, :0].cuda(), b[:0].cuda(), beta=beta)
        same(got, torch.addmm(c, a[:, :0], b[:0], beta=beta))
        empty = torch.ones(3, 5, 0, dtype=c.dtype), torch.ones(3, 0, 4, dtype=c.dtype)
        got = torch.baddbmm(c.cuda(), *(x.cuda() for x in empty), beta=beta)
        same(got, torch.baddbmm(c, *empty, beta=beta))


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 7), (7,), (0, 7), (2, 0), (2, 3, 0), (0,)])
def test_linear(shape):
    x, w, b = example("float32", *shape), example("float32", 4, shape[-1]), example("float32", 4)
    for bias in (None, b, b[0], example("float32", 8)[::2]):
        got = functional.linear(x.cuda(), w.cuda(), None if bias is None else bias.cuda()).cpu()
        torch.testing.assert_close(got, functional.linear(x, w, bias))


@pytest.mark.parametrize("dtype", [*INTEGERS, *COMPLEX])
def test_products_of_integers_and_complex_numbers(dtype):
    a, b, c = example(dtype, 20, 35), example(dtype, 18, 35).t(), example(dtype, 20, 18)
    if dtype in COMPLEX:
        a, b = a * (1 + 2j), b - 1j
    close = {"rtol": 1e-5, "atol": 1e-4} if dtype == "complex64" else {"rtol": 1e-12, "atol": 1e-12}

    def near(call, *given: torch.Tensor) -> None:
        got = call(*(t.cuda() for t in given))
        assert got.device.type == "cuda"
        torch.testing.assert_close(got.cpu(), call(*given), **close)

    pairs = [(a, b), (a.t().contiguous().t(), b.contiguous()), (a[::2], b[:, ::3]), (a[:1], b), (a, b[:, :1]),
             (a[:, :1], b[:1]), (a[:0], b), (a[:, :0], b[:0]), (a[0], b), (a, b[:, 0]), (a[0], b[:, 0])]  # fmt: skip
    for x, y in pairs:
        near(torch.matmul, x, y)
    near(torch.bmm, torch.stack([a, a + a, a]), torch.stack([b, b, b + b]))
    near(torch.bmm, a.expand(3, *a.shape), torch.stack([b, b, b + b]))
    for beta, alpha in ((1, 1), (0, 3), (2, -1), (3, 0)):
        for addend in (c, c[0], c[:, :1], c[0, 0]):
            near(lambda t, x, y, b=beta, a=alpha: torch.addmm(t, x, y, beta=b, alpha=a), addend, a, b)
        near(lambda t, x, y, b=beta, a=alpha: torch.baddbmm(t, x, y, beta=b, alpha=a), c, a[None], b[None])
    near(functional.linear, torch.stack([a, a]), b.t(), c[0])
    near(functional.linear, a, b[:, 0])
    if dtype in COMPLEX:
        near(lambda t, x, y: torch.addmm(t, x, y, beta=1j, alpha=2 - 1j), c, a, b)
        near(lambda x, y: x.mH @ y.conj(), a, a)


def test_operators_without_a_kernel_say_so(without_kernel):
    x = torch.tensor([2.0, 3.0], device="cuda")
    with pytest.raises(NotImplementedError, match="no kernel for device cuda"):
        without_kernel(x)
    torch.backends.device_fallback = "warn"
    try:
        with pytest.warns(UserWarning, match="the operator ran on the CPU"):
            y = without_kernel(x)
        assert y.is_cuda
        assert y.tolist() == without_kernel(x.cpu()).tolist()
    finally:
        torch.backends.device_fallback = "error"


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 10), 1), ((10, 3), 0), ((2, 700), -1), ((2, 5, 3), 1), ((5, 1), 1)]
)
def test_softmax_and_its_gradient(shape, dim, dtype):
    close = {"rtol": 1e-2, "atol": 1e-3} if dtype in ("float16", "bfloat16") else {"rtol": 1e-5, "atol": 1e-6}
    for function in (functional.softmax, functional.log_softmax):
        host = example(dtype, *shape).requires_grad_()
        device = example(dtype, *shape).cuda().requires_grad_()
        wanted, got = function(host, dim), function(device, dim)
        torch.testing.assert_close(got.detach().cpu(), wanted.detach(), **close)
        weight = example(dtype, *shape).flip(0)
        (wanted * weight).sum().backward()
        (got * weight.cuda()).sum().backward()
        torch.testing.assert_close(device.grad.cpu(), host.grad, **close)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 300), (500, 3), (0, 7), (3, 0)])
def test_layer_norm_and_its_gradients(shape, dtype):
    kind, size = getattr(torch, dtype), shape[-1]
    x = (example("float64", *shape) + 30).to(kind)
    weight, bias = (example("float64", size) / 3).to(kind), example(dtype, size)
    found = []
    for device in ("cpu", "cuda"):
        leaves = [t.detach().to(device).requires_grad_() for t in (x, weight, bias)]
        y = functional.layer_norm(leaves[0], (size,), leaves[1], leaves[2])
        z = functional.rms_norm(leaves[0].transpose(0, -1).contiguous().transpose(0, -1), (size,), leaves[1])
        (y * y.detach().cos() + z * z.detach().sin()).sum().backward()
        found.append([t.cpu() for t in (y.detach(), z.detach(), *(leaf.grad for leaf in leaves))])
    digits = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12}[dtype]
    for host, device in zip(*found, strict=True):
        torch.testing.assert_close(device, host, rtol=digits, atol=30 * digits)


def test_layer_norm_keeps_its_digits_beside_a_large_mean():
    x = torch.arange(1000.0) % 7 + 1e6
    torch.testing.assert_close(
        functional.layer_norm(x.cuda(), (1000,)).cpu(),
        functional.layer_norm(x, (1000,)),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 4, 2), (1500, 3), (40, 1000), (7,)])
@pytest.mark.parametrize("kind", ["nll", "cross entropy", "smoothed", "weighted"])
def test_losses_of_classes(kind, shape, reduction):
    classes = shape[0] if len(shape) == 1 else shape[1]
    x = example("float32", *shape)
    target = (
        torch.arange(torch.Size((*shape[:1], *shape[2:]) if len(shape) > 1 else ()).numel()) * 5 % classes
    )
    target = target.reshape((*shape[:1], *shape[2:]) if len(shape) > 1 else ())
    found = []
    for device in ("cpu", "cuda"):
        leaf, classes_of = x.detach().to(device).requires_grad_(), target.to(device)
        weight = (torch.arange(float(classes)) % 3 + 0.5).to(device) if kind != "cross entropy" else None
        if kind == "nll":
            loss = functional.nll_loss(leaf, classes_of, weight, ignore_index=1, reduction=reduction)
        else:
            smoothing = 0.1 if kind == "smoothed" else 0.0
            loss = functional.cross_entropy(
                leaf, classes_of, weight, ignore_index=1, reduction=reduction, label_smoothing=smoothing
            )
        (loss * loss.detach().cos()).sum().backward()
        found.append([loss.detach().cpu(), leaf.grad.cpu()])
    for host, device in zip(*found, strict=True):
        torch.testing.assert_close(device, host, rtol=2e-5, atol=2e-5, equal_nan=True)


def test_a_target_that_is_no_class_is_found():
    x = torch.zeros(3, 4, device="cuda")
    for target in ([0, 4, 1], [0, -1, 1]):
        with pytest.raises(IndexError):
            functional.cross_entropy(x, torch.tensor(target).cuda())
            torch.cuda.synchronize()
    assert functional.cross_entropy(x, torch.tensor([0, -100, 1]).cuda()).item() == pytest.approx(math.log(4))


def test_a_network_trains_as_on_the_cpu():
    def train(device):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).to(device)
        x, y = example("float32", 20, 6).to(device), example("float32", 20, 3).to(device)
        losses = []
        for _ in range(6):
            loss = (net(x) - y).square().mean()
            loss.backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.05 * p.grad
                    p.grad = None
            losses.append(loss.item())
        return losses

    host, device = train("cpu"), train("cuda")
    assert host[-1] < host[0]
    assert device == pytest.approx(host, rel=1e-4)


STEPS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.1, weight_decay=0.01),
    "centered": lambda p: torch.optim.RMSprop(p, lr=0.1, centered=True, eps=0.1),
    "rmsprop_momentum": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9, maximize=True),
    "centered_momentum": lambda p: torch.optim.RMSprop(p, lr=0.1, centered=True, momentum=0.9, eps=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, weight_decay=0.01),
    "adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.1, weight_decay=0.01, decoupled_weight_decay=True),
    "radam": lambda p: torch.optim.RAdam(p, lr=0.1, weight_decay=0.01),
    "rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
    "asgd": lambda p: torch.optim.ASGD(p, lr=0.1, t0=1),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("kind", STEPS)
def test_optimizers_step_as_on_the_cpu(kind, dtype):
    made = {}
    for device in ("cpu", "cuda"):
        # More parameters than one launch handles, of several sizes. One is empty, and one is not row-major.
        params = [example(dtype, 3, n % 5).to(device).requires_grad_() for n in range(70)]
        params.append(example(dtype, 4, 6).t().to(device).requires_grad_())
        optimizer = STEPS[kind](params)
        for _ in range(3):
            for p in params:
                p.grad = (p.detach() * 2).add_(1)
            optimizer.step()
        numbers = [value for own in optimizer.state.values() for value in own.values() if value.dim() == 0]
        assert all(number.device.type == device for number in numbers)
        made[device] = [t.detach().cpu() for t in params + numbers]
    tolerance = {"float32": 2e-6, "bfloat16": 1e-2, "float64": 1e-12}[dtype]
    for got, wanted in zip(made["cuda"], made["cpu"], strict=True):
        torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_rows_and_slices_by_index(dtype):
    x = example(dtype, 5, 4, 3)
    for kind in (torch.int64, torch.int32):
        index = torch.tensor([4, 0, 0, 2], dtype=kind)
        for dim, indices in ((0, index), (1, index.clamp(max=3)), (-1, index.clamp(max=2))):
            same(x.cuda().index_select(dim, indices.cuda()), x.index_select(dim, indices))
            transposed, low = x.transpose(0, 1), indices % 3
            same(transposed.cuda().index_select(dim, low.cuda()), transposed.index_select(dim, low))
        table = x[:, 0]
        same(
            torch.embedding(table.cuda(), index.reshape(2, 2).cuda()),
            torch.embedding(table, index.reshape(2, 2)),
        )
    same(x.cuda().index_select(1, index[:0].cuda()), x.index_select(1, index[:0]))


def test_an_index_out_of_range_is_found_and_leaves_the_device_usable():
    x = torch.arange(12.0, device="cuda").reshape(4, 3)
    for index in ([0, 4], [-1, 2]):
        torch.cuda.synchronize()
        y = x.index_select(0, torch.tensor(index).cuda())
        with pytest.raises(
            IndexError, match=r"index_select at .*test_kernels.py:\d+: an index is out of range"
        ):
            torch.cuda.synchronize()
        assert (x + 1).sum().item() == 78
        assert y.shape == (2, 3)
    torch.embedding(x, torch.tensor([7]).cuda())
    with pytest.raises(IndexError, match="embedding"):
        x.cpu()
    with pytest.raises(IndexError):
        x[:, :0].index_select(1, torch.tensor([0]).cuda())


def test_all_failed_operators_are_named_in_their_order():
    x = torch.arange(12.0, device="cuda")
    torch.cuda.synchronize()
    x.index_select(0, torch.tensor([99]).cuda())
    torch.bernoulli(x)
    x.gather(0, torch.tensor([-77]).cuda())
    with pytest.raises(IndexError) as caught:  # the class of the first error
        torch.cuda.synchronize()
    lines = str(caught.value).splitlines()
    assert [line.removeprefix("also ").split(" at ")[0].split()[-1] for line in lines] == [
        "index_select",
        "bernoulli",
        "gather",
    ]
    assert "probability" in lines[1]
    torch.cuda.synchronize()
    for _ in range(10):
        x.index_select(0, torch.tensor([99]).cuda())
    with pytest.raises(IndexError, match="at most 8 are kept"):
        torch.cuda.synchronize()
    assert (x + 1).sum().item() == 78


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "uint64"])
def test_integers_are_not_divided_by_zero(dtype):
    x = torch.full((3, 4), 7, dtype=getattr(torch, dtype)).cuda()
    for divisor in (torch.ones_like(x), torch.ones_like(x)[0], torch.ones_like(x).t().contiguous().t()):
        x // divisor
        torch.cuda.synchronize()
        divisor[..., -1] = 0
        for divide, name in ((torch.floor_divide, "floor_divide"), (torch.remainder, "remainder")):
            divide(x, divisor)
            with pytest.raises(RuntimeError, match=rf"{name} at .*test_kernels.py:\d+: .*ZeroDivisionError"):
                torch.cuda.synchronize()


def test_standard_deviations_are_checked():
    std = torch.tensor([0.0, 2.0]).cuda()
    torch.normal(0.0, std)
    torch.normal(std, std.to(torch.bfloat16))
    torch.cuda.synchronize()
    for wrong in (-1.0, float("nan")):
        std[1] = wrong
        torch.normal(torch.zeros_like(std), std)
        with pytest.raises(RuntimeError, match=r"normal at .*: an element is negative or NaN"):
            torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_and_scatter(dtype, dim):
    x = example(dtype, 4, 5, 6).transpose(0, 1)  # (5, 4, 6)
    size = x.shape[dim]
    index = (torch.arange(3 * 3 * 3).reshape(3, 3, 3) * 5 % size).contiguous()
    same(torch.gather(x.cuda(), dim, index.cuda()), torch.gather(x, dim, index))
    order = torch.arange(3).reshape([3 if d == dim % 3 else 1 for d in range(3)]).expand(3, 3, 3)
    src = example(dtype, 3, 3, 4).flip(2)
    same(x.cuda().scatter(dim, order.cuda(), src.cuda()), x.scatter(dim, order, src))
    nothing = torch.zeros(0, dtype=torch.int64)
    same(
        torch.gather(x.cuda(), dim, nothing.reshape(0, 1, 1).cuda()),
        torch.gather(x, dim, nothing.reshape(0, 1, 1)),
    )


def test_gather_of_one_element():
    one, index = torch.tensor(2.5), torch.tensor([0, 0])
    same(torch.gather(one.cuda(), 0, index.cuda()), torch.gather(one, 0, index))
    same(one.cuda().scatter(0, torch.tensor(0).cuda(), torch.tensor(7.0).cuda()), torch.tensor(7.0))


def test_a_bad_index_of_gather_and_scatter_is_found():
    x = torch.ones(3, 4, device="cuda")
    for bad in (4, -1):
        index = torch.tensor([[bad]]).cuda()
        for call in (lambda i: torch.gather(x, 1, i), lambda i: x.scatter_(1, i, torch.zeros(1, 1).cuda())):
            with pytest.raises(IndexError):
                call(index)
                torch.cuda.synchronize()
    assert x.sum().item() == 12  # nothing was written


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(4, 6), (2, 6, 4), (0, 3), (3, 0), (2, 1, 5)])
def test_triangles_and_reversed_dimensions(dtype, shape):
    x = example(dtype, *shape)
    for tensor in (x, x.transpose(-1, -2)):
        for diagonal in (-2, 0, 1, 100, -100):
            same(tensor.cuda().tril(diagonal), tensor.tril(diagonal))
            same(tensor.cuda().triu(diagonal), tensor.triu(diagonal))
        for dims in ((0,), (-1,), tuple(range(x.ndim)), ()):
            same(tensor.cuda().flip(dims), tensor.flip(dims))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x.exponential_(1.5),
        lambda x: x.geometric_(0.3),
        lambda x: x.cauchy_(0.5, 2.0),
        lambda x: x.log_normal_(0.25, 0.5),
    ],
    ids=["exponential", "geometric", "cauchy", "log_normal"],
)
def test_distributions_draw_what_the_cpu_draws(draw, dtype):
    kind = getattr(torch, dtype)
    torch.manual_seed(11)
    here = draw(torch.empty(7, 301, dtype=kind))
    torch.manual_seed(11)
    there = draw(torch.empty(7, 301, dtype=kind, device="cuda"))
    torch.testing.assert_close(there.cpu(), here, rtol=4 * torch.finfo(kind).eps, atol=0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_geometric_integers(dtype):
    kind = getattr(torch, dtype)
    torch.manual_seed(11)
    here = torch.empty(500, dtype=kind).geometric_(0.004)
    torch.manual_seed(11)
    there = torch.empty(500, dtype=kind, device="cuda").geometric_(0.004)
    assert there.cpu().equal(here)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dot(dtype):
    x, y = example(dtype, 37), example(dtype, 74)[::2]
    torch.testing.assert_close(x.cuda().dot(y.cuda()).cpu(), x.dot(y))
    assert x.cuda()[:0].dot(y.cuda()[:0]).item() == 0
    assert x.cuda()[:1].dot(y.cuda()[:1]).shape == ()
