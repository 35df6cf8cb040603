"""The layers, one file per family."""
