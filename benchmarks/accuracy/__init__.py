"""Measure the time that training takes to reach an accuracy, beside PyTorch, for the same seeds and batches."""
