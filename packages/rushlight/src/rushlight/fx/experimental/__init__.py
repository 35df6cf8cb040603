"""Parts of PyTorch's tracer that libraries ask: see `proxy_tensor`."""
