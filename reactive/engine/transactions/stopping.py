"""End of what works for a database beside its commits, before the database is closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reactive.engine.transactions.engine import Engine


def stop_work(engine: Engine) -> None:
    """Stop sinks, moves to elsewhere and the thread that stores views, which does so once more."""
    for sink in list(engine.sinks):
        sink.stop()
    if engine.pending is not None or engine.aside:
        return  # it is not closed then
    if engine.overflow is not None:
        engine.overflow.stop()
    if engine.journal is not None and engine.journal.kept_views is not None:
        engine.journal.kept_views.close()
