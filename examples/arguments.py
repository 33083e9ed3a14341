"""Arguments of commands."""

from __future__ import annotations

from argparse import ArgumentTypeError


def positive(text: str) -> int:
    """Return a whole number from 1 on.

    Raises
    ------
    ArgumentTypeError: it is another one.
    ValueError: it is none.

    >>> positive("12")
    12
    """
    found = int(text)
    if found < 1:
        raise ArgumentTypeError(f"{text} is not a number from 1 on")
    return found
