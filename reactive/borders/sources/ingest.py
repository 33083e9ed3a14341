"""Begin to feed tables from a source; `Database.ingest`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from reactive.borders.sources.batch import Batch, OnRefusal, Token, check_policy
from reactive.borders.sources.commit_batch import commit_batch
from reactive.borders.sources.ingestion import Ingestion
from reactive.borders.sources.ledger import Ledger
from reactive.borders.sources.source import Batches, Source, as_source
from reactive.borders.sources.targets import Targets
from reactive.errors import SourceError, TransactionError

if TYPE_CHECKING:
    from reactive.api.table import Table
    from reactive.engine.transactions.engine import Engine


def ingest(
    engine: Engine,
    source: Source[Any] | Batches[Any] | None,
    into: Table[Any] | Mapping[type, Table[Any]],
    since: Token,
    on_error: OnRefusal,
    name: str | None,
    on_stop: Callable[[Ingestion[Any]], object] | None = None,
) -> Ingestion[Any]:
    """An ingestion that has not been started."""
    found, called = as_source(source, name)
    check_policy(on_error)
    if engine.mine is not None:
        raise TransactionError(
            f"source {called!r} cannot be ingested inside a transaction, which its commits wait "
            "for\n  do it after the `with` block"
        )
    targets = Targets(into, engine)
    if callable(getattr(found, "feeds", None)):
        found.feeds(targets.by_class())  # type: ignore[union-attr]
    engine.check_open()
    if called in engine.ingestions:
        raise SourceError(
            f"source {called!r} is running already\n  stop() that one, or give this one a name"
        )
    ledger = engine.ledgers.get(called)
    if ledger is None:
        ledger = engine.ledgers.setdefault(called, Ledger(engine, called, targets))
    ledger.check_same(targets)
    if since is not None and ledger.token is not None and not since == ledger.token:
        raise SourceError(
            f"source {called!r} is at token {ledger.token!r:.100}, not at {since!r:.100}\n"
            "  without `since` it goes on from there; under another name it begins anew"
        )
    if since is not None:
        ledger.since = since
    if on_error == "drop":
        ledger.keep_errors()

    def commit(batch: Any, drops: bool) -> int:
        if not isinstance(batch, Batch):
            raise SourceError(
                f"source {called!r} gave {batch!r:.100}, which is no batch\n"
                "  give Batch([rows], token=...)"
            )
        return commit_batch(engine, ledger, batch, drops=drops)

    drops = on_error == "drop"
    return Ingestion(engine, found, ledger, since, commit, drops=drops, on_stop=on_stop)


def stop_all(engine: Engine, patience: float) -> None:
    """Stop what feeds a database that is about to be closed. One that does not heed that will come
    to its end with its next batch."""
    running: list[Ingestion[Any]] = list(engine.ingestions.values())
    for ingestion in running:
        ingestion._stop.set()
    for ingestion in running:
        ingestion._is_stopped(patience)
