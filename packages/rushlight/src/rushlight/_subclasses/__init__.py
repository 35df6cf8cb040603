"""Placeholders for the tensors without values of PyTorch's tracer. See `fake_tensor`."""
