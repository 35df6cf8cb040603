"""Rows: the measured statements, declared as data.

A row names a statement and the setup that makes its operands. The same text runs against every library: the
name ``torch`` is bound to the library under test, as by ``import rushlight as torch`` in a program.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of a table.

    name: unique within its suite. statement: the code that is timed. setup: runs once per library, before
    the timing; sees ``torch`` (the library), ``np`` (NumPy), ``data`` (see `harness.data`) and ``fill``.
    result: an expression whose value must agree between the libraries; by default the statement itself when
    it is an expression. The timing begins only after this check has passed. target: the ratio to the peer that this project
    promises, if any. numpy, numpy_setup: the same work in NumPy, if NumPy can do it. peer_setup: the setup that puts the
    peer in its best configuration, if that differs from its defaults. rtol, atol: tolerances of the results. group, size:
    the geometric means in which the row counts.
    """

    name: str
    statement: str
    setup: str = ""
    result: str | None = None
    target: float | None = None
    numpy: str | None = None
    numpy_setup: str = ""
    peer_setup: str | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    group: str = ""
    size: str = ""
