"""Parts of PyTorch's own tests with which libraries test."""
