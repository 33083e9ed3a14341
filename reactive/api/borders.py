"""The modules of borders that methods of tables and views ask for; each border can be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive.engine.runtime.left_out import optional

if TYPE_CHECKING:
    from reactive.borders.frames import export, history, loading, sync
    from reactive.borders.sinks import making
else:
    export = optional("borders.frames.export")
    history = optional("borders.frames.history")
    loading = optional("borders.frames.loading")
    making = optional("borders.sinks.making")
    sync = optional("borders.frames.sync")

__all__ = ["export", "history", "loading", "making", "sync"]
