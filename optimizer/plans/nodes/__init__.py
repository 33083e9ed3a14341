"""The nodes of plans, a file for each family; `optimizer.plan` has all of them by their names."""
