"""Statements that change a database: its tables, its views, and their rows."""
