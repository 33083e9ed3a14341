"""Tests of the FindBugs analyses."""
