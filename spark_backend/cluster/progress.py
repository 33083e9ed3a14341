"""A progress line while rows are sent to Spark.

It appears only at a terminal, and disappears afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def show_progress(name: str, rows: int) -> Iterator[None]:
    """Show the line during the context."""
    from rich.console import Console  # slow to import

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{name}: {rows:,} rows to Spark"):
        yield
