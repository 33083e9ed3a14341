"""Fifteen analyses of FindBugs as live queries over Java class files. See docs/findbugs.md."""
