"""The operators of the graph: each turns the deltas of its inputs into the delta of its output.

An operator knows neither plans nor the graph. Its protocol is `operator.py`; `docs/operators.md`
is the catalogue.
"""
