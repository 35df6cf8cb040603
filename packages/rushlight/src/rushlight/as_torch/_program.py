"""The main program under `python -m rushlight.as_torch`, and in the processes that it spawns.

`multiprocessing` makes a spawned child import its parent's main program, by the name in that program's `__spec__`. The name
is this module's, so that in the child, too, `torch` means rushlight before a line of the program runs. Importing the module
under its own name, as tools do that import every module of a package, runs nothing.
"""

if __name__ in ("__main__", "__mp_main__"):
    from importlib import import_module as _import_module

    _import_module("rushlight.as_torch").install()
    exec(_import_module("rushlight.as_torch._code").code_of_program(globals()), globals())
