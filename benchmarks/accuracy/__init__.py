"""Time to accuracy: how long training takes until a figure is reached, beside PyTorch, for the same seeds and batches."""
