"""SQL text as queries and statements, live like any other.

Lives here: reading SQL (`read`), columns and types (`schema`, `types`, `values`), names (`scope`),
            expressions (`scalar`, `predicate`, `functions`, `aggregates`, `windows`), queries and
            sub-queries (`query`, `subquery`), statements, and a small shell.
Comes in:   the text, the tables and views of a database, and constants for its parameters.
Goes out:   plan nodes whose callables are expressions; changes of tables.
May import: `optimizer`, and all rooms but `offload`; sqlglot, which is optional, only for parsing.
"""
