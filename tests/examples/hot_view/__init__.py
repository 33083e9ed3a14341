"""Tests of the view that outgrows the process."""
