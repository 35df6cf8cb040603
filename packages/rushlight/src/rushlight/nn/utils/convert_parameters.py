"""Parameters as one vector, by the file that PyTorch has them in."""

from rushlight_nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]
