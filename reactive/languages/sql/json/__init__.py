"""JSON in Postgres and DuckDB, and maps and structs of DuckDB.

`documents` and `texts` compute `jsonb` and `json` of Postgres, `jsonpath` its paths, `trees` JSON
of DuckDB, all of values; the `of_...` modules make expressions of nodes.
"""
