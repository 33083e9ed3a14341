"""The compiler: from a query to nodes of the graph.

Lives here:  the choice of loops, of shared indexes and of existing segments; the ways of updates
             through queries (`lineage.py`).
Comes in:    plans as written, and as the optimizer rewrites them.
Goes out:    nodes of the graph.
May import:  `remote`, `dataflow`, `operators`, `collections`, `runtime`.
"""
