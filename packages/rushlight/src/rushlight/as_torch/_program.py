"""The main program under `python -m rushlight.as_torch`, and in the processes that it spawns.

A child process that `multiprocessing` spawns imports the main program of its parent, which it finds by the name in
`__spec__`. Here, `__spec__` names this module, so `torch` refers to rushlight in the child, too, before the program runs. If
this module is imported under its own name, for example by a tool that imports every module of a package, no program runs.
"""

if __name__ in ("__main__", "__mp_main__"):
    from importlib import import_module as _import_module

    _import_module("rushlight.as_torch").install()
    exec(_import_module("rushlight.as_torch._code").code_of_program(globals()), globals())
