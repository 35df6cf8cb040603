"""Run random programs in rushlight and in PyTorch: `nox -s fuzz -- --minutes 120 --seed 1`.

A program is some tensors and 3 to 12 calls of operators on them: functions, methods, in-place forms, `out=`, views and
indexing, of mixed dtypes and shapes, run directly or under `backward`, `jvp` or `vmap` (program.py). PyTorch's process
generates the program, call by call, so that most calls are valid (generate.py, values.py) and have a result that both
libraries define (undefined.py), and runs it; rushlight's process runs the same program (execute.py, processes.py). A program
with a difference (compare.py) is shrunk to the few calls and elements that are needed (shrink.py). The difference is
explained by PyTorch's results for similar programs (explain.py, wider.py, slopes.py), by other code of PyTorch (beside.py)
or with the same rounding errors (follow.py), and put into a group by operator and kind of difference (campaign.py). Known
groups are listed in known.yaml with reasons; any other group ends the session with an error and leaves a script that shows
the difference.

With `--each` every operator is called alone instead, at zeros, ties, tiny and large numbers, infinities and NaN, and with
empty shapes and other numbers of dimensions (each.py), which long programs reach only by chance.

A program depends only on its seed and number: seed S and number N always give the same program, whatever ran before.
"""
