"""Neural-network layers, with one file for each family of layers."""
