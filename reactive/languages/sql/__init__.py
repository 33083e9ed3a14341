"""SQL text as queries and statements, live like any other.

Lives here: reading texts (`text`), types, values and names (`terms`), expressions (`expressions`,
            `functions`, `aggregates`, `windows`), queries and sub-queries (`queries`), statements
            (`statements`), what runs with the rows (`runtime`, `partitions`), and a small `shell`.
Comes in:   the text, the tables and views of a database, and constants for its parameters.
Goes out:   plan nodes whose callables are expressions; changes of tables.
May import: `optimizer`, `engine`, `api`; sqlglot, which is optional, only for parsing.
"""
