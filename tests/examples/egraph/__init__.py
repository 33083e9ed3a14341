"""Tests of equality saturation."""
