"""The live shell: a session of statements, and tables from files."""
