"""Datalog programs, against an evaluator that knows nothing of plans."""
