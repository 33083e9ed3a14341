"""The engine: from a query and its tables to views that follow each commit.

Lives here:  rows as data, operators, the graph, the compiler, transactions, the reference.
Comes in:    plans; changes of tables.
Goes out:    the rows of views, and deltas.
May import:  `optimizer`.
"""
