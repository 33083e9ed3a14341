"""Tests of files as a source."""
