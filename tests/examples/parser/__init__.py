"""Tests of the incremental parser."""
