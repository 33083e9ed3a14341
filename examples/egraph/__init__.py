"""Equality saturation as a live Datalog program."""
