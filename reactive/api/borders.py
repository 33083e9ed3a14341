"""The border modules that methods of tables and views use; each border can be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactive.engine.runtime.left_out import optional

if TYPE_CHECKING:
    from reactive.borders.frames import export, loading
    from reactive.borders.frames import export as history
    from reactive.borders.frames import loading as sync
    from reactive.borders.sinks import making
else:
    export = optional("borders.frames.export")
    history = optional("borders.frames.export")
    loading = optional("borders.frames.loading")
    making = optional("borders.sinks.making")
    sync = optional("borders.frames.loading")

__all__ = ["export", "history", "loading", "making", "sync"]
