"""Compare rushlight with PyTorch on every entry of PyTorch's operator database (`nox -s opinfo`).

`op_db` of the installed PyTorch holds, for each operator, samples of its arguments and arguments that must raise.
Each sample is passed to PyTorch's function and to our function of the same name; `comparison` and `report` describe the
comparison and the conditions under which an operator counts as complete. Operators run in worker processes (`isolation`), so
that a crash is one row of the table.

Intended differences are listed in differences.yaml, with reasons. An entry that no longer differs is an error.
"""
