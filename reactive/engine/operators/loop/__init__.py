"""Loops that go on from round to round: evaluated whole, onward from where they were, or both."""
