"""Stores of tables: their rows, by themselves or by key.

Lives here:  stores, and the classes of rows that they accept.
Comes in:    the changes of statements.
Goes out:    deltas; the rows, with one object for all equal rows.
May import:  `codegen`, `collections`, `runtime`.
"""
