"""Functions, layers, optimizers, schedulers and averages, compared with stored values of PyTorch 2.13."""

from __future__ import annotations

import pytest
from reference_values import RTOL, SUBJECTS, kept, library, wrong_in


@pytest.fixture
def ours():
    return library("rushlight")


# Names without a case, and the reasons.
EXEMPT = {
    **dict.fromkeys(("Module", "RNNBase", "RNNCellBase", "Optimizer", "LRScheduler"), "a base class"),
    **dict.fromkeys(("ModuleDict", "ModuleList", "ParameterDict", "ParameterList"), "a container"),
    **dict.fromkeys(("Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"), "a tensor"),
    **dict.fromkeys(("functional", "init"), "a module"),
    "DataParallel": "for several devices",
    "LinearCrossEntropyOptions": "settings",
    "SparseAdam": "needs an engine: test_sparse_gradients.py of the package rushlight",
    "SyncBatchNorm": "PyTorch's needs a group of processes",
    "factory_kwargs": "no layer",
    "update_bn": "called for every average",
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_values(ours, subject):
    data = kept(subject)
    wrong = []
    for key, expected in data.items():
        assert expected, f"no values of {key}: reference_values.py says how to write them"
        wrong += wrong_in(ours, subject, key, expected)
    assert not wrong, f"{len(wrong)} of {len(data)} cases:\n" + "\n".join(wrong[:10])


def test_everything_has_a_case(ours):
    cases = {subject: "\n".join(kept(subject)) for subject in SUBJECTS}
    missing = [f"F.{name}" for name in ours.F.__all__ if f"F.{name}(" not in cases["functions"]]
    missing += [
        f"nn.{name}"
        for name in ours.nn.__all__
        if f"nn.{name}(" not in cases["layers"] and name not in EXEMPT
    ]
    missing += [
        name
        for name in ours.optim.__all__
        if f"optim.{name}(" not in cases["optimizers"] and name not in EXEMPT
    ]
    rest = cases["schedulers"] + cases["averages"]
    for module in (ours.lr_scheduler, ours.swa_utils):
        missing += [name for name in module.__all__ if f".{name}(" not in rest and name not in EXEMPT]
    assert not missing


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_wrong_value_is_found(ours, subject):
    key, record = next(iter(kept(subject).items()))
    for name, entry in record.items():
        if name.startswith("grad "):
            continue
        largest = max(range(1, len(entry)), key=lambda i, entry=entry: abs(entry[i]))
        if not entry[largest]:
            continue
        changed = [*entry]
        changed[largest] *= 1 + 3 * RTOL
        assert wrong_in(ours, subject, key, {**record, name: changed})
        assert wrong_in(ours, subject, key, {**record, name: ["7", *entry[1:]]})
    assert wrong_in(ours, subject, key, {**record, "another": ["", 1.0]})
    assert not wrong_in(ours, subject, key, record)
