"""PyTorch dtypes that rushlight's tensors do not support, for programs that list or compare dtypes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class OtherDtype:
    """A dtype that no tensor can have. Operators raise TypeError if this dtype is passed."""

    def __init__(
        self, name: str, itemsize: int, is_floating_point: bool, is_complex: bool, is_signed: bool
    ) -> None:
        self._name = name
        self.itemsize = itemsize
        self.is_floating_point = is_floating_point
        self.is_complex = is_complex
        self.is_signed = is_signed

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name

    def to_real(self) -> NoReturn:
        """Raise NotImplementedError."""
        raise NotImplementedError(f"{self!r}: there are no tensors of this dtype")

    to_complex = to_real


_INTEGERS = (
    "qint8",
    "quint8",
    "qint32",
    "quint4x2",
    "quint2x4",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)),
)

OTHERS = {
    "float4_e2m1fn_x2": OtherDtype("float4_e2m1fn_x2", 1, True, False, True),
    **{
        name: OtherDtype(name, 4 if name == "qint32" else 1, False, False, "uint" not in name)
        for name in _INTEGERS
    },
    "complex32": OtherDtype("complex32", 4, False, True, True),
}
OTHERS["chalf"] = OTHERS["complex32"]


def __getattr__(name: str) -> OtherDtype:
    if name in OTHERS:
        return OTHERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
