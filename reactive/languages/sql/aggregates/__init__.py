"""Aggregates: how a call of one is read, and the folds that each needs of a group."""
