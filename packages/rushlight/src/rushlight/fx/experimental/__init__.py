"""Parts of PyTorch's tracer that libraries use: see `proxy_tensor`."""
