"""Compare the names that PyTorch documents with those of rushlight, and write docs/names.md (`nox -s names`).

The public names are taken from the installed PyTorch: names of a module's `__all__` (or defined in it) that have a
docstring, and Tensor's own attributes. Arguments come from its stubs, from `inspect`, or from the first lines of the
docstring, in this order. rushlight's names are determined in the same way.

A name is *present* if every documented call of it works here with the same meaning: each of PyTorch's signatures is turned
into calls (every number of positional arguments, all by name), and each call must bind to one of our signatures, argument
by argument, with the same defaults for omitted arguments. A name that exists and does not bind in this way is *different*.

Programs also import from modules that have no documentation page (`torch.nn.modules.padding`), and use members of classes.
Only the presence of these is compared: of every public name of every public module below `AREAS`, and of every public member
of their classes.
"""
