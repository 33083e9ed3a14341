"""Provenance: why a row is in a query, or not, answered from the rows of tables and live views.

Lives here:  rows with wanted values, pulled through the nodes of a plan; derivations of rows and
             the search for the lowest proof; its check; ways to rows that are not there.
Comes in:    a plan as written, a row, and the sources of rows of tables, views and recursions.
Goes out:    steps of proofs, which `api` shows.
May import:  `reference`, `codegen`, `collections`, `runtime`, the indexes of `transactions`.
"""
