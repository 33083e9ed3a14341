"""The borders and languages that a database uses; each can be left out.

A method that needs an omitted part raises an error at its first use, which names the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from reactive.engine.compiler import placement
from reactive.engine.runtime.left_out import LeftOutError, left_out, optional
from reactive.engine.runtime.needs import installing
from reactive.errors import OffloadError, PlanError

if TYPE_CHECKING:
    from reactive.borders.durable import group as beginning
    from reactive.borders.durable import journal as history
    from reactive.borders.durable import opening, read_only
    from reactive.borders.durable import opening as adopting
    from reactive.borders.durable import sqlite_file as backup
    from reactive.borders.frames import loading
    from reactive.borders.objects import decorator as assigning
    from reactive.borders.objects import silent
    from reactive.borders.offload import backend, offload, remote_table
    from reactive.borders.offload import backend as statuses
    from reactive.borders.offload import remote_table as stream_tables
    from reactive.borders.sources import batch as batches
    from reactive.borders.sources import batch as sources
    from reactive.borders.sources import ingest as feeding
    from reactive.borders.sources import ingest as watched_tables
    from reactive.borders.sources import ingestion as ingestions
    from reactive.engine.transactions.engine import Engine
    from reactive.languages.datalog import program as programs
else:
    adopting = optional("borders.durable.opening")
    assigning = optional("borders.objects.decorator")
    backend = optional("borders.offload.backend")
    backup = optional("borders.durable.sqlite_file")
    batches = optional("borders.sources.batch")
    beginning = optional("borders.durable.group")
    feeding = optional("borders.sources.ingest")
    history = optional("borders.durable.journal")
    ingestions = optional("borders.sources.ingestion")
    loading = optional("borders.frames.loading")
    offload = optional("borders.offload.offload")
    opening = optional("borders.durable.opening")
    programs = optional("languages.datalog.program")
    read_only = optional("borders.durable.read_only")
    remote_table = optional("borders.offload.remote_table")
    silent = optional("borders.objects.silent")
    sources = optional("borders.sources.batch")
    statuses = optional("borders.offload.backend")
    stream_tables = optional("borders.offload.remote_table")
    watched_tables = optional("borders.sources.ingest")

__all__ = [
    "adopting",
    "assigning",
    "backend",
    "backup",
    "batches",
    "beginning",
    "feeding",
    "history",
    "ingestions",
    "loading",
    "object_table",
    "opening",
    "placed",
    "programs",
    "read_only",
    "remote_table",
    "load_rereading",
    "silent",
    "sources",
    "sql",
    "statuses",
    "stream_tables",
    "watched_tables",
]


def placed(engine: Engine, given: backend.Offload | None) -> offload.Offloading:
    """Return the placement of parts of queries: all in this process without the offload border."""
    try:
        made: offload.Offloading = offload.Offloading(engine, given)
    except LeftOutError as error:
        if given is not None:
            raise
        return cast("offload.Offloading", placement.AllHere(engine, OffloadError(str(error))))
    return made


def object_table() -> Any:
    """Return the class of tables of tracked objects, imported at the first use."""
    return optional("borders.objects.table").ObjectTable


def load_rereading(engine: Engine) -> Any:
    """Return the object that reads tables of an engine again from their sources."""
    return optional("borders.two_commits.rereading").rereading(engine)


def sql() -> Any:
    """Return the module that reads SQL, which needs an optional library."""
    try:
        from reactive.languages.sql import entry
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sqlglot":
            raise left_out(error) from None
        raise PlanError(
            f"SQL is read by sqlglot, which is not installed\n  {installing('sql')}"
        ) from None
    return entry
