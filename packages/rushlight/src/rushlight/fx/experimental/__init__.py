"""Placeholder for PyTorch's operator tracer, from which libraries import names: see `proxy_tensor`."""
