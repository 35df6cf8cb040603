"""Datasets as pipelines, which are absent; the names that libraries check for."""
