"""Benchmarks of rushlight and its peers: ``python -m benchmarks``. Packages never import this."""
