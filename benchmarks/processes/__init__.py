"""What the suite `processes` measures: programs of several processes, which run with either library."""
