"""A line that says that rows are on their way to Spark, while that takes time.

At a terminal it turns while it lasts, and is gone afterwards; elsewhere nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting(name: str, rows: int) -> Iterator[None]:
    """Show the line as long as the context lasts."""
    from rich.console import Console  # it takes a while to import

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{name}: {rows:,} rows to Spark"):
        yield
