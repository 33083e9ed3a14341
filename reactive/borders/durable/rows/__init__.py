"""Rows as tuples of plain values, and back, by what their class says, or an earlier one said."""
