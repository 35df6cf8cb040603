"""Random choices on the plug-in, which equal those on the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch

pytestmark = pytest.mark.usefixtures("driver")


def both(call, x: torch.Tensor) -> None:
    torch.manual_seed(5)
    host = call(x)
    torch.manual_seed(5)
    device = call(x.cuda())
    assert device.device.type == "cuda"
    torch.testing.assert_close(device.cpu(), host, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_tosses_and_choices(dtype):
    p = (torch.arange(60) * 7 % 11 / 10).reshape(5, 12).to(dtype)
    both(torch.bernoulli, p)
    both(lambda t: torch.bernoulli(t.t()), p)
    both(lambda t: torch.bernoulli(t[:0]), p)
    for samples in (1, 8):
        both(lambda t, n=samples: torch.multinomial(t, n), p)
        both(lambda t, n=samples: torch.multinomial(t[2], n), p)
        both(lambda t, n=samples: torch.multinomial(t.t().contiguous().t(), 4 * n, replacement=True), p)
    both(lambda t: torch.multinomial(t * 0 + (torch.arange(12).to(t) == 3), 6, replacement=True), p)


def test_many_weights():
    weights = (torch.arange(3000) * 31 % 101).double()
    both(lambda t: torch.multinomial(t, 40), weights)
    both(lambda t: torch.multinomial(t, 500, replacement=True), weights)


def test_bad_probabilities_and_weights():
    for bad in (-0.1, 1.5, float("nan")):
        with pytest.raises(RuntimeError, match="between 0 and 1"):
            torch.bernoulli(torch.tensor([0.5, bad]).cuda())
            torch.cuda.synchronize()
    for bad, samples in (([1.0, -1.0], 1), ([1.0, float("inf")], 1), ([0.0, 0.0], 1), ([1.0, 0.0], 2)):
        with pytest.raises(RuntimeError, match="weights"):
            torch.multinomial(torch.tensor(bad).cuda(), samples)
            torch.cuda.synchronize()
    assert torch.bernoulli(torch.ones(3).cuda()).cpu().equal(torch.ones(3))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 100, 5000])
def test_permutations(n):
    for seed in range(3):
        torch.manual_seed(seed)
        host = torch.randperm(n)
        torch.manual_seed(seed)
        device = torch.randperm(n, device="cuda")
        assert device.device.type == "cuda"
        assert device.cpu().equal(host)
        assert host.sort()[0].equal(torch.arange(n))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_numbers_drawn_by_rejection(dtype):
    def near(call, *given: torch.Tensor) -> None:
        torch.manual_seed(5)
        host = call(*given)
        torch.manual_seed(5)
        device = call(*(t.cuda() for t in given))
        assert device.device.type == "cuda"
        tolerance = {torch.float16: 2e-3, torch.float32: 1e-6}.get(dtype, 1e-12)
        torch.testing.assert_close(device.cpu(), host, rtol=tolerance, atol=0)

    shapes = (torch.arange(600) % 40 / 8 + 0.01).reshape(20, 30).to(dtype)
    rates = (torch.arange(600) % 60).reshape(20, 30).to(dtype)
    for place in (lambda t: t, lambda t: t.t(), lambda t: t[:0], lambda t: t[3, 4]):
        near(torch._standard_gamma, place(shapes))
        near(torch._standard_log_gamma, place(shapes))
        near(torch.poisson, place(rates))
        near(torch.binomial, place(rates), place((torch.arange(600) % 21 / 20).reshape(20, 30).to(dtype)))


def test_bad_parameters_of_distributions():
    for call in (torch._standard_gamma, torch._standard_log_gamma, torch.poisson):
        for bad in (-1.0, float("nan"), float("inf")):
            with pytest.raises(RuntimeError, match="parameter"):
                call(torch.tensor([2.0, bad]).cuda())
                torch.cuda.synchronize()
    for count, p, text in ((-1.0, 0.5, "parameter"), (1.5, 0.5, "parameter"), (2.0, 1.5, "between 0 and 1")):
        with pytest.raises(RuntimeError, match=text):
            torch.binomial(torch.tensor([count]).cuda(), torch.tensor([p]).cuda())
            torch.cuda.synchronize()
