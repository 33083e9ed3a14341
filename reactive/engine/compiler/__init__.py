"""From a query to nodes of the graph.

Lives here:  what becomes one loop, which joins share an index, which segments are there already;
             which ways updates of tables go through them (`lineage.py`).
Comes in:    plans as they were written, and those that the optimizer makes of them.
Goes out:    nodes of the graph.
May import:  `remote`, `dataflow`, `operators`, `collections`, `runtime`.
"""
