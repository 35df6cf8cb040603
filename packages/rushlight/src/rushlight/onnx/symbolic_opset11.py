"""Placeholder for a module that libraries import.

The YAML entry of an operator, not this module, defines the operator's export to ONNX."""
