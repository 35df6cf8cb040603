"""Tensors without values, which PyTorch's tracer makes: there are none. See `fake_tensor`."""
