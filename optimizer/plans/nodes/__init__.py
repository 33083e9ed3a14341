"""Nodes of plans in modules of their own; `optimizer.plan` exports all nodes by their names."""
