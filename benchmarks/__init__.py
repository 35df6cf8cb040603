"""Benchmarks of rushlight against its peers: ``python -m benchmarks``. Packages never import this."""
