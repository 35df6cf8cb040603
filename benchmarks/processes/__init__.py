"""The programs of several processes that the suite `processes` measures with either library."""
