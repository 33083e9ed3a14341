"""Replay the history of a program: each revision is one transaction, timed and verified."""
