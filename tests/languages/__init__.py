"""Tests of the languages, by room."""
