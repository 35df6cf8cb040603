"""What PyTorch documents beside what rushlight has: writes docs/names.md (`nox -s names`).

What is public in PyTorch is taken from PyTorch itself: names of a module's `__all__` (or defined in it) that have a
docstring, and Tensor's own attributes. Arguments come from its stubs, from `inspect`, or from the first lines of the
docstring, in this order. Of rushlight the same is looked at in the same way.

A name is *present* if every documented call of it works here with the same meaning: each of PyTorch's signatures is turned
into calls (every number of positional arguments, all by name), and each call must bind to one of our signatures, argument
by argument, with the same defaults for what was left out. What is there and does not bind so is *different*.

Programs also import from modules that no documentation page is about (`torch.nn.modules.padding`), and use members of
classes: of those only the presence is compared, of every public name of every public module below `AREAS`, and of every
public member of their classes.
"""
