"""Rows as tuples of plain values, and back, according to their class or an earlier one."""
