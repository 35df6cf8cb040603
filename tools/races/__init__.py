"""Programs that use threads, and suppressions for the thread sanitizer, for `nox -s races`."""
