"""Programs as users write them, for type checkers: `accepted.py`, which runs too, `refused.py`."""
