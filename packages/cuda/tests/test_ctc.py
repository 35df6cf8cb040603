"""The loss for sequences without alignment, compared with the CPU."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.nn import functional
from rushlight_core import _C

pytestmark = pytest.mark.usefixtures("driver")

TARGETS = torch.tensor([[1, 1, 2, 3], [2, 0, 0, 0], [3, 3, 3, 3], [0, 0, 0, 0]])


def losses(device: str, dtype: torch.dtype, **options) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    scores = torch.randn(9, 4, 5).to(dtype).to(device).requires_grad_()
    loss = functional.ctc_loss(
        scores.log_softmax(-1),
        TARGETS.to(device),
        torch.tensor([9, 5, 6, 0]).to(device),
        torch.tensor([4, 1, 4, 0]).to(device),
        reduction="none",
        **options,
    )
    loss.nan_to_num(0, 0, 0).sum().backward()
    assert loss.device.type == device
    return loss.detach().cpu(), scores.grad.cpu()


@pytest.mark.parametrize("blank", [0, 4])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_and_their_gradients(dtype, zero_infinity, blank):
    # The third target needs more time than there is, so that its loss is infinite.
    host = losses("cpu", dtype, zero_infinity=zero_infinity, blank=blank)
    device = losses("cuda", dtype, zero_infinity=zero_infinity, blank=blank)
    assert bool(host[0].isinf().any()) != zero_infinity
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for one, other in zip(device, host, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(
    ("label", "time", "length"), [(5, 3, 2), (-1, 3, 2), (1, 9, 2), (1, 3, 7), (1, -1, 2)]
)
def test_lengths_and_labels_out_of_range(label, time, length):
    scores = torch.zeros(4, 1, 5).cuda()
    with pytest.raises(RuntimeError, match="out of range"):
        _C._call_boxed(
            "_ctc_loss", scores, torch.tensor([[2, label, 1]]).cuda(), torch.tensor([time]).cuda(),
            torch.tensor([length]).cuda(), 0, False,
        )  # fmt: skip
        torch.cuda.synchronize()
    torch.testing.assert_close((scores + 1).cpu(), torch.ones(4, 1, 5))
