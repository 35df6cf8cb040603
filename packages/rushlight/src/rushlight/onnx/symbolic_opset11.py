"""Names that libraries import; operators are exported by their entries."""
