"""Printed tensors: every dtype and option, leaves and results. The expected texts are from PyTorch 2.13."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import rushlight as torch

# values, dtype, shape (None for the shape of the values), "leaf" or "result" if it requires grad, options, text
# fmt: off
CASES: list[tuple[Any, str, Any, str, dict[str, Any], str]] = [
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float64', None, '', {},
     'tensor([ 1.0000e-01, -2.5000e+00,  3.2500e+00,  1.4286e+02],\n       dtype=torch.float64)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float16', None, '', {},
     'tensor([ 9.9976e-02, -2.5000e+00,  3.2500e+00,  1.4288e+02],\n       dtype=torch.float16)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'bfloat16', None, '', {},
     'tensor([ 1.0010e-01, -2.5000e+00,  3.2500e+00,  1.4300e+02],\n       dtype=torch.bfloat16)'),
    ([1, 20, 100], 'int8', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.int8)'),
    ([1, 20, 100], 'int16', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.int16)'),
    ([1, 20, 100], 'int32', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.int32)'),
    ([1, 20, 100], 'uint8', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.uint8)'),
    ([1, 20, 100], 'uint16', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.uint16)'),
    ([1, 20, 100], 'uint32', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.uint32)'),
    ([1, 20, 100], 'uint64', None, '', {},
     'tensor([  1,  20, 100], dtype=torch.uint64)'),
    ([True, False, True, True], 'bool', (2, 2), '', {},
     'tensor([[ True, False],\n        [ True,  True]])'),
    ([0.0001, 1.0], 'float32', None, '', {},
     'tensor([1.0000e-04, 1.0000e+00])'),
    ([9.9e-05, 1.0], 'float32', None, '', {},
     'tensor([9.9000e-05, 1.0000e+00])'),
    ([100000000.0, 1.0], 'float32', None, '', {},
     'tensor([1.0000e+08, 1.0000e+00])'),
    ([100000008.0], 'float32', None, '', {},
     'tensor([1.0000e+08])'),
    ([123456.0, 0.5], 'float32', None, '', {},
     'tensor([1.2346e+05, 5.0000e-01])'),
    ([99999.0, 100.0], 'float32', None, '', {},
     'tensor([99999.,   100.])'),
    ([0.0, 1e-08], 'float32', None, '', {},
     'tensor([0.0000e+00, 1.0000e-08])'),
    ([0.0, -0.0, 0.0], 'float32', None, '', {},
     'tensor([0., -0., 0.])'),
    ([1.5, 1500.0], 'float32', None, '', {},
     'tensor([   1.5000, 1500.0000])'),
    ([1.5, 1501.0], 'float32', None, '', {},
     'tensor([1.5000e+00, 1.5010e+03])'),
    ([nan, 1.0, -inf, 2.5], 'float32', None, '', {},
     'tensor([   nan, 1.0000,   -inf, 2.5000])'),
    ([nan, nan], 'float32', None, '', {},
     'tensor([nan, nan])'),
    ([inf, -inf, 3.0], 'float32', None, '', {},
     'tensor([inf, -inf, 3.])'),
    ([nan, 1e-07], 'float32', None, '', {},
     'tensor([       nan, 1.0000e-07])'),
    ([10000000000.0, inf], 'float32', None, '', {},
     'tensor([1.0000e+10,        inf])'),
    ([1.0, 2.0], 'float32', None, '', {'sci_mode': True},
     'tensor([1.0000e+00, 2.0000e+00])'),
    ([1e-07, 1.0], 'float32', None, '', {'sci_mode': False},
     'tensor([0.0000, 1.0000])'),
    ([1.0, nan], 'float32', None, '', {'sci_mode': True},
     'tensor([1.0000e+00,        nan])'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float32', None, '', {'precision': 2},
     'tensor([ 1.00e-01, -2.50e+00,  3.25e+00,  1.43e+02])'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float32', None, '', {'precision': 0},
     'tensor([ 1e-01, -2e+00,  3e+00,  1e+02])'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float64', None, '', {'precision': 8},
     'tensor([ 1.00000000e-01, -2.50000000e+00,  3.25000000e+00,  1.42857143e+02],\n       dtype=torch.float64)'),
    ([1e-07, 1.0], 'float32', None, '', {'precision': 1},
     'tensor([1.0e-07, 1.0e+00])'),
    (list(range(12)), 'int64', (3, 4), '', {'threshold': 5},
     'tensor([[ 0,  1,  2,  3],\n        [ 4,  5,  6,  7],\n        [ 8,  9, 10, 11]])'),
    (list(range(12)), 'int64', (3, 4), '', {'threshold': 5, 'edgeitems': 1},
     'tensor([[ 0,  ...,  3],\n        ...,\n        [ 8,  ..., 11]])'),
    ([i / 7 for i in range(24)], 'float32', (2, 3, 4), '', {'threshold': 0, 'edgeitems': 1},
     'tensor([[[0.0000,  ..., 0.4286],\n         ...,\n         [1.1429,  ..., 1.5714]],\n\n'
     '        [[1.7143,  ..., 2.1429],\n         ...,\n         [2.8571,  ..., 3.2857]]])'),
    ([0.5] * 6, 'float32', (6,), '', {'threshold': 2, 'edgeitems': 2},
     'tensor([0.5000, 0.5000,  ..., 0.5000, 0.5000])'),
    ([1000.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1000.0], 'float32', None, '', {'threshold': 2, 'edgeitems': 2},
     'tensor([1.0000e+03, 5.0000e-01,  ..., 5.0000e-01, 1.0000e+03])'),
    ([0.5, 0.5, 0.5, 1000000.0, 0.5, 0.5, 0.5], 'float32', None, '', {'threshold': 2, 'edgeitems': 1},
     'tensor([0.5000,  ..., 0.5000])'),
    (list(range(20)), 'int64', None, '', {'linewidth': 30},
     'tensor([ 0,  1,  2,  3,  4,\n         5,  6,  7,  8,  9,\n        10, 11, 12, 13, 14,\n'
     '        15, 16, 17, 18, 19])'),
    ([i * 1.5 for i in range(9)], 'float64', (3, 3), '', {'linewidth': 20},
     'tensor([[ 0.0000,\n          1.5000,\n          3.0000],\n        [ 4.5000,\n          6.0000,\n'
     '          7.5000],\n        [ 9.0000,\n         10.5000,\n         12.0000]],\n'
     '       dtype=torch.float64)'),
    ([1, 2, 3], 'int16', None, '', {'linewidth': 25},
     'tensor([1, 2, 3],\n       dtype=torch.int16)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float32', (2, 2), 'leaf', {},
     'tensor([[ 1.0000e-01, -2.5000e+00],\n        [ 3.2500e+00,  1.4286e+02]], requires_grad=True)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float64', (4,), 'leaf', {'linewidth': 40},
     'tensor([ 1.0000e-01, -2.5000e+00,\n         3.2500e+00,  1.4286e+02],\n       dtype=torch.float64,\n'
     '       requires_grad=True)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float32', (2, 2), 'result', {},
     'tensor([[ 1.0000e-01, -2.5000e+00],\n        [ 3.2500e+00,  1.4286e+02]], grad_fn=<MulBackward0>)'),
    ([], 'float32', (0, 3), 'leaf', {},
     'tensor([], size=(0, 3), requires_grad=True)'),
    ([], 'bool', (0,), '', {},
     'tensor([], dtype=torch.bool)'),
    ([], 'float64', (2, 0, 1), '', {},
     'tensor([], size=(2, 0, 1), dtype=torch.float64)'),
    ([2.5], 'float32', (), 'leaf', {},
     'tensor(2.5000, requires_grad=True)'),
    ([7], 'uint8', (), '', {},
     'tensor(7, dtype=torch.uint8)'),
    ([nan], 'float16', (), '', {},
     'tensor(nan, dtype=torch.float16)'),
    ([1e-09], 'float32', (), '', {},
     'tensor(1.0000e-09)'),
    ([5.0], 'float64', (1, 1, 1), '', {},
     'tensor([[[5.]]], dtype=torch.float64)'),
    ([0.1, -2.5, 3.25, 1e3 / 7], 'float32', None, '', {'profile': 'short'},
     'tensor([ 1.00e-01, -2.50e+00,  3.25e+00,  1.43e+02])'),
    ([i / 3 for i in range(1100)], 'float32', None, '', {'profile': 'short'},
     'tensor([0.00e+00, 3.33e-01,  ..., 3.66e+02, 3.66e+02])'),
    ([i / 3 for i in range(10)], 'float32', (2, 5), '', {'threshold': 3, 'edgeitems': 0},
     'tensor([...], size=(2, 5))'),
]
# fmt: on


@pytest.mark.parametrize(("values", "dtype", "shape", "origin", "options", "text"), CASES)
def test_text(values: Any, dtype: str, shape: Any, origin: str, options: dict[str, Any], text: str) -> None:
    x = torch.tensor(values, dtype=getattr(torch, dtype))
    x = x if shape is None else x.reshape(shape)
    if origin:
        x.requires_grad_()
    if origin == "result":
        x = x * 1
    with torch.printoptions(profile="default"), torch.printoptions(**options):
        assert repr(x) == str(x) == text


def test_against_the_installed_pytorch() -> None:
    peer = pytest.importorskip("torch")
    for values, dtype, shape, origin, options, _ in CASES:
        texts = []
        for library in (torch, peer):
            x = library.tensor(values, dtype=getattr(library, dtype))
            x = x if shape is None else x.reshape(shape)
            x = x.requires_grad_() if origin else x
            x = x * 1 if origin == "result" else x
            former = library.get_printoptions() if library is torch else None
            library.set_printoptions(profile="default")
            library.set_printoptions(**options)
            texts.append(repr(x))
            library.set_printoptions(**(former or {"profile": "default"}))
        assert texts[0] == texts[1]
