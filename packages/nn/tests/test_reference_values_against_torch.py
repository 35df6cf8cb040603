"""The stored reference values equal the results of PyTorch, if it is installed."""

from __future__ import annotations

import pytest
from reference_values import SUBJECTS, kept, library, wrong_in

torch = pytest.importorskip("torch")


@pytest.mark.skipif(not torch.__version__.startswith("2.13"), reason="the values are those of PyTorch 2.13")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_values(subject):
    wrong = []
    for key, expected in kept(subject).items():
        wrong += wrong_in(library("torch"), subject, key, expected)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong[:10])
