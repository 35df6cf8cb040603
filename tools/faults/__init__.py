"""Inject faults into data loading, processes and ranks of rushlight and PyTorch: `nox -s faults`."""
