"""Faults of data loading, processes and ranks, in rushlight and in PyTorch: `nox -s faults`."""
