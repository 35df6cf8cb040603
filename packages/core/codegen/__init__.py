"""The code generator, which writes C++, Python stubs and documentation from the operators' YAML entries.

Read the modules in this order: `argument_types` (argument types), `schema` (signatures), `model` (an operator), `loader`
(YAML to model), then the `emit_*` modules, one for each kind of output. Autograd uses the first four modules to generate its
own tables.
"""
