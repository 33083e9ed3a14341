"""Tests of the engine, by room."""
