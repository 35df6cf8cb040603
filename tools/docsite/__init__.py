"""Build the documentation site: `nox -s site`.

`pages` collects the pages of docs/; `reference` and `operators` write the API reference from the installed packages.
Sphinx makes HTML of both, and `checks` checks the result. docs/decisions/0042-documentation-site.md has the reasons.
"""
