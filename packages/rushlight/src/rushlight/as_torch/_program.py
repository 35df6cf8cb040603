"""The main program under `python -m rushlight.as_torch`, and in the processes that it spawns.

A child process that `multiprocessing` spawns runs the main module of its parent again, which it finds by the
name in the main module's `__spec__`. This name is the name of this module. The child therefore runs this
module, and `torch` refers to rushlight before the program runs in the child, as in the parent. If this module
is imported under its own name, for example by a tool that imports every module of a package, no program runs.
"""

if __name__ in ("__main__", "__mp_main__"):
    from importlib import import_module as _import_module

    _import_module("rushlight.as_torch").install()
    exec(_import_module("rushlight.as_torch._code").code_of_program(globals()), globals())
