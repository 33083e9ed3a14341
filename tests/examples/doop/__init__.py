"""Tests of points-to analyses in the style of Doop."""
