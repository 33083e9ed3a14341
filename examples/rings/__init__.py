"""Aggregates over rings: a live regression over a join of three tables, and provenance."""
