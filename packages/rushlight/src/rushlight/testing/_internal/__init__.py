"""Parts of PyTorch's test utilities that libraries use."""
