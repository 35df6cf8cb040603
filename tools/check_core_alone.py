"""Check rushlight-core without any other package: tensors and exchange with NumPy work, and there are no gradients.

`nox -s core-alone` runs this program with the Python of an environment that contains only rushlight-core.
"""

from __future__ import annotations

import sys
from importlib.metadata import distributions

ALLOWED = {"rushlight-core", "numpy", "pip", "setuptools", "wheel"}


def main() -> int:
    installed = {distribution.metadata["Name"].lower() for distribution in distributions()}
    if not {"rushlight-core", "numpy"} <= installed <= ALLOWED:
        print(
            f"this is for an environment with core alone; installed are {sorted(installed)}", file=sys.stderr
        )
        return 2

    import rushlight_core as core

    if "numpy" in sys.modules:
        print("importing rushlight_core has imported numpy, which is loaded on first use", file=sys.stderr)
        return 1
    import numpy as np

    # Tensors.
    x = core.arange(6.0).reshape(2, 3)
    assert (x @ x.T).tolist() == [[5.0, 14.0], [14.0, 50.0]]
    assert x[:, 1:].sum(dim=1).tolist() == [3.0, 9.0]
    assert core.tensor([1, 2]).add(0.5).dtype == core.float32
    assert core.nonzero(x > 3).tolist() == [[1, 1], [1, 2]]

    # NumPy, without a copy, both ways.
    array = x.numpy()
    array[0, 0] = 9.0
    assert x[0, 0].item() == 9.0
    back = core.from_numpy(array)
    back[1, 2] = 7.0
    assert array[1, 2] == 7.0
    assert np.allclose(np.sin(x), core.sin(x).numpy())

    # DLPack, without a copy, both ways.
    seen = np.from_dlpack(x)
    assert np.shares_memory(seen, array)
    taken = core.from_dlpack(np.arange(4))
    assert taken.tolist() == [0, 1, 2, 3]

    # Gradients: a tensor may require grad, and the error names the package that computes gradients.
    y = (x.requires_grad_() * 2).sum()
    assert x.grad is None
    assert y.grad_fn is None
    try:
        y.backward()
        said = "nothing"
    except RuntimeError as error:
        said = str(error)
    assert "pip install rushlight-autograd" in said, said
    print("core alone: tensors, NumPy and DLPack; backward() names rushlight-autograd")
    return 0


if __name__ == "__main__":
    sys.exit(main())
