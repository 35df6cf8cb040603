"""Random programs in rushlight and in PyTorch: `nox -s fuzz -- --minutes 120 --seed 1`.

A program is some tensors and 3 to 12 calls of operators on them: functions, methods, in-place forms, `out=`, views and
indexing, of mixed dtypes and shapes, run as it is, under `backward`, `jvp` or `vmap` (program.py). PyTorch's process
makes the program, call by call, so that most calls are valid (generate.py, values.py) and have a result that both libraries
promise (undefined.py), and runs it; rushlight's process runs the same (execute.py, processes.py). What differs (compare.py)
is shrunk to the few calls and elements that are needed (shrink.py), explained by what PyTorch does beside it (explain.py,
wider.py, slopes.py), by other code (beside.py) or with the same roundings (follow.py), and put into a group by operator and
kind of difference (campaign.py). Groups that are known stand in known.yaml with reasons; any other ends the session with an
error and leaves a script that shows the difference.

With `--each` every operator is called alone instead, at zeros, ties, tiny and large numbers, infinities and NaN, and in
shapes of no elements and of other ranks (each.py): places to which long programs come by chance.

A program follows from its number alone: seed S and number N always give the same one, whatever ran before.
"""
