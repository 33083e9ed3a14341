"""Connections and cursors of PEP 249, Python's database interface."""
