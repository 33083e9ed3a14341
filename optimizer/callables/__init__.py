"""Callables as values.

Lives here: what users write, its text and syntax, what it captures, and where it stands.
Comes in:   callables of users.
Goes out:   `Opaque`, with constants for what it captures.
May import: the standard library.
"""
