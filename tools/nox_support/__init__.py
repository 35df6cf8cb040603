"""The modules of noxfile.py: bootstrap, graph of packages, builder of wheels, environments.

Only `bootstrap` runs before nox is installed, so it imports nothing but the standard library.
"""
