"""The generator: from one YAML entry per operator to everything that follows from it.

Read in this order: `argument_types` (what an argument can be), `schema` (signatures), `model` (an operator),
`loader` (YAML to model), then one `emit_*` module per artefact. Autograd uses the first four for its own tables.
"""
