"""Tests of the live linter."""
