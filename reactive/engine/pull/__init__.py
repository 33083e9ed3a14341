"""Rows that a query has for given values, found through indexes, without a view of the query."""
