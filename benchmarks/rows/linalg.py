"""Dense linear algebra on one matrix of 4, 64 and 512 rows and on batches, against the peer's LAPACK (MKL)."""

from __future__ import annotations

from collections.abc import Iterator

from . import Row

# Both call libraries that others have tuned for decades, so the target is to be close to the peer.
TARGET = 2.0
SHAPES = ((4, 4), (64, 64), (512, 512), (1000, 4, 4), (64, 64, 64))


def rows() -> Iterator[Row]:
    for shape in SHAPES:
        n = shape[-1]
        setup = f"L = torch.linalg; x = data{shape}; a = torch.tensor(x + {n} * np.eye({n}, dtype=x.dtype))"
        symmetric = f"{setup}; s = a @ a.mT"
        right = f"{setup}; b = torch.tensor(data({', '.join(map(str, shape))}, seed=1))"
        label = "x".join(map(str, shape))
        for name, statement, how, result in (
            ("solve", "L.solve(a, b)", right, None),
            ("inv", "L.inv(a)", setup, None),
            ("det", "L.det(a / a.abs().amax())", setup, None),
            ("cholesky", "L.cholesky(s)", symmetric, None),
            ("qr", "L.qr(a)", setup, "L.qr(a).R.abs()"),
            ("eigh", "L.eigh(s)", symmetric, "L.eigh(s).eigenvalues"),
            ("svd", "L.svd(a)", setup, "L.svd(a).S"),
        ):
            yield Row(
                f"{name} {label}",
                statement,
                how,
                result=result,
                target=TARGET,
                rtol=1e-3,
                atol=1e-3 * n,
                group="linalg",
            )
