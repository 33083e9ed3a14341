"""Nodes of plans that have a file of their own; `optimizer.plan` has all nodes by their names."""
