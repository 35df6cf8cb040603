"""Compare convolutions and their gradients on the GPU, by cuDNN and by the plug-in's own kernels, with the CPU.

    PYTHONPATH=tools python -m gpu.convolutions [--plugin LIBRARY] [--json FILE]

Each line has the largest error of a convolution relative to its largest element, and the milliseconds of one forward and
backward pass, for each setting of `backends.cudnn`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from gpu import plugin

# Function, sizes of the input and the weight, options.
CASES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1d": ("conv1d", (2, 8, 50), (8, 8, 5), {"padding": 2}),
    "2d": ("conv2d", (2, 16, 14, 14), (16, 16, 3, 3), {"padding": 1}),
    "strided": ("conv2d", (2, 16, 14, 14), (16, 16, 3, 3), {"stride": 2, "padding": 1}),
    "pointwise": ("conv2d", (2, 16, 14, 14), (32, 16, 1, 1), {}),
    "stem": ("conv2d", (2, 3, 32, 32), (8, 3, 7, 7), {"stride": 2, "padding": 3}),
    "dilated": ("conv2d", (1, 16, 14, 14), (8, 16, 3, 3), {"dilation": 2}),
    "groups": ("conv2d", (1, 32, 12, 12), (32, 8, 3, 3), {"groups": 4}),
    "depthwise": ("conv2d", (2, 32, 12, 12), (32, 1, 3, 3), {"groups": 32}),
    "transposed": ("conv_transpose2d", (1, 16, 8, 8), (16, 8, 3, 3), {"stride": 2, "output_padding": 1}),
    "3d": ("conv3d", (1, 8, 4, 6, 6), (8, 8, 3, 3, 3), {"padding": 1}),
}
# The largest error, relative to the largest element. TF32 and bfloat16 have 10 and 7 bits of mantissa.
TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
TF32 = 1e-2
FLAGS: dict[str, dict[str, Any]] = {
    "own kernels": {"enabled": False, "allow_tf32": False},
    "recommended": {"enabled": True, "allow_tf32": False},
    "tf32": {"enabled": True, "allow_tf32": True},
    "benchmark": {"enabled": True, "benchmark": True, "allow_tf32": False},
    "deterministic": {"enabled": True, "deterministic": True, "allow_tf32": False},
}


def passes(case: str, dtype: str, channels_last: bool, device: str) -> tuple[list[Any], float]:
    """Return the result and the gradients of one convolution, and the time of a second pass in milliseconds."""
    import rushlight as torch

    function, shape, kernel, options = CASES[case]
    torch.manual_seed(0)
    channels = kernel[1] * options.get("groups", 1) if "transpose" in function else kernel[0]
    given = [torch.randn(size).to(getattr(torch, dtype)) for size in (shape, kernel, (channels,))]
    if channels_last:
        format = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        given[:2] = [t.to(memory_format=format) for t in given[:2]]
    tensors = [t.to(device).requires_grad_() for t in given]
    for _ in range(2):
        for t in tensors:
            t.grad = None
        started = time.perf_counter()
        y = getattr(torch.nn.functional, function)(*tensors, **options)
        y.backward(torch.ones_like(y))
        results = [t.detach().cpu() for t in (y, *(t.grad for t in tensors))]
    return results, 1e3 * (time.perf_counter() - started)


def main() -> int:
    import rushlight as torch

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plugin.add_option(parser)
    parser.add_argument("--every", type=int, default=1, help="run one form in N (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="a file for the errors and times")
    given = parser.parse_args()
    plugin.attach(given.plugin)
    records: list[dict[str, Any]] = []
    failed = 0
    forms = [
        (case, dtype, channels_last)
        for case in CASES
        for dtype in TOLERANCE
        for channels_last in ((False, True) if len(CASES[case][1]) > 3 else (False,))
    ]
    for case, dtype, channels_last in forms[:: given.every]:
        wanted, _ = passes(case, dtype, channels_last, "cpu")
        record: dict[str, Any] = {"case": case, "dtype": dtype, "channels_last": channels_last}
        for name, flags in FLAGS.items():
            if name == "tf32" and dtype != "float32":
                continue
            with torch.backends.cudnn.flags(**flags):
                found, milliseconds = passes(case, dtype, channels_last, "cuda")
            error = max(
                float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(1e-30))
                for a, b in zip(found, wanted, strict=True)
            )
            limit = TF32 if name == "tf32" else TOLERANCE[dtype]
            failed += not error <= limit
            mark = "" if error <= limit else f", more than {limit:g}"
            record[name] = {"error": error, "milliseconds": round(milliseconds, 3)}
            layout = "channels-last" if channels_last else "row-major"
            print(f"{case}, {dtype}, {layout}, {name}: {error:.1e}{mark}, {milliseconds:.2f} ms", flush=True)
        records.append(record)
    if given.json:
        given.json.write_text(json.dumps(records, indent=1) + "\n")
    print(f"{failed} of {sum(len(record) - 3 for record in records)} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
