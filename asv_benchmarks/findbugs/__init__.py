"""The FindBugs example: fifteen analyses kept up to date, beside evaluating them from scratch."""
