"""The suites. Each module has ``run(options) -> dict`` (JSON-ready) and ``render(result) -> str`` (text)."""
