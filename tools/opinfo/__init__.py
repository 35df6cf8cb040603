"""Every entry of PyTorch's own operator database, here and in PyTorch (`nox -s opinfo`).

`op_db` of the installed PyTorch holds, for each operator, samples of its arguments and arguments that must raise.
Each is given to PyTorch's function and to ours of the same name; what is compared, and when an operator counts as
complete, is described in `comparison` and `report`. Operators run in worker processes (`isolation`), so that a crash
is one row of the table.

Differences that are meant stand in differences.yaml, with reasons. An entry that no longer differs is an error.
"""
