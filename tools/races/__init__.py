"""Programs that use threads, and what the thread sanitizer has to know, for `nox -s races`."""
