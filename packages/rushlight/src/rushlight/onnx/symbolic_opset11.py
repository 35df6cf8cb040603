"""How operators are exported: nothing is."""
