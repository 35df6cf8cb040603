"""The generator, which produces everything that follows from an operator's YAML entry.

Read the modules in this order: `argument_types` (argument types), `schema` (signatures), `model` (an operator), `loader`
(YAML to model), then one `emit_*` module per output. Autograd uses the first four for its own tables.
"""
