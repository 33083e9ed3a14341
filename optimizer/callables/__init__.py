"""Callables as values.

Lives here: callables of users, their text and syntax, their captures, and their places.
Comes in:   callables of users.
Goes out:   `Opaque`, with constants for its captures.
May import: the standard library.
"""
