"""SQL views against SQLite and DuckDB: a player, and scripts that are written or drawn."""
