"""What PyTorch keeps for its own tests, and libraries test with."""
