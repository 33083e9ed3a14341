"""Queries: each clause as a step from one plan to the next."""
