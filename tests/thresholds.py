"""Other values for the thresholds that change the strategy of the library.

Small tables, few readers and short histories, as random tests have them, reach few of these
strategies. With all thresholds at their lowest they reach all of them immediately: commits are
generated code from the first, values are looked up from the first reader, sorted rows are in chunks
of two.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from random import Random
from typing import NamedTuple

from optimizer.lazy import Lazy
from reactive.engine.compiler import templates

NEVER = 10**9


class Threshold(NamedTuple):
    """The least and the greatest value that make sense."""

    lowest: int
    highest: int = NEVER


THRESHOLDS: dict[str, Threshold] = {
    "reactive.engine.provenance.row_sources.FEW": Threshold(0),
    "reactive.engine.provenance.row_sources.MOST": Threshold(1),
    "reactive.engine.transactions.commit_log.LEAST": Threshold(0),
    "reactive.engine.operators.fixpoint.joined_relation.FEW_STEPS": Threshold(1),
    "reactive.engine.operators.fixpoint.lattice_relation.MANY_MEMBERS": Threshold(0),
    "reactive.api.expiry.FEW": Threshold(0),
    "reactive.engine.transactions.rows_by_field.FIRST": Threshold(1),
    "reactive.engine.transactions.rows_by_field.SMALL": Threshold(0),
    "reactive.engine.transactions.rows_by_field.FEW": Threshold(0),
    "optimizer.expressions.text.LARGEST": Threshold(1),
    "optimizer.expressions.simplification.LONGEST": Threshold(0),
    "optimizer.lifting.lift.DEEPEST": Threshold(0, 5),
    "optimizer.lifting.lift.LARGEST": Threshold(1),
    "optimizer.lifting.lift.LONGEST": Threshold(0),
    "optimizer.plans.join_order.MOST_STARTS": Threshold(1),
    "optimizer.rewriting.optimize.MOST_ROUNDS": Threshold(1, 8),
    "optimizer.rules.fold_values.MOST": Threshold(0),
    "optimizer.rules.make_semi_join.DEEPEST": Threshold(0, 500),
    "optimizer.rules.drop_inner_distinct.DEEPEST": Threshold(0, 500),
    "optimizer.rules.fuse_wheres.MOST": Threshold(1),
    "optimizer.rules.prune_join_inputs.MOST": Threshold(0),
    "optimizer.rules.split_disjunction.MOST": Threshold(1),
    "optimizer.plans.multiway.FEWEST": Threshold(3),
    "optimizer.plans.multiway.MOST": Threshold(3, 15),
    "optimizer.rewriting.optimize.HIGHEST": Threshold(2),
    "reactive.engine.codegen.functions.LONGEST": Threshold(0),
    "reactive.engine.codegen.probes.MOST_REPEATED": Threshold(1),
    "reactive.borders.mirrors.kinds.CHUNK": Threshold(1),
    "reactive.borders.mirrors.kinds.FETCHED": Threshold(1),
    "reactive.engine.transactions.commit.LAST": Threshold(1),
    "reactive.borders.durable.rows.packed.SLICE": Threshold(1),
    "reactive.borders.durable.sqlite_tables.PIECE": Threshold(1),
    "reactive.engine.transactions.commit.SAMPLES": Threshold(0),
    "reactive.engine.transactions.commit.MANY": Threshold(0),
    "reactive.engine.transactions.row_gate.MANY": Threshold(1),
    "reactive.engine.storage.store.MANY": Threshold(1),
    "reactive.engine.storage.plain_rows.SAMPLED": Threshold(1, 64),
    "reactive.engine.storage.plain_rows.COMPARED": Threshold(1, 4096),
    "reactive.engine.compiler.chooser.MOST_NODES": Threshold(1, 16),
    "reactive.engine.compiler.templates.LEARNED_AT": Threshold(1),
    "reactive.engine.compiler.templates.MOST_KEYS": Threshold(1, 256),
    "reactive.engine.compiler.templates.MOST_TEMPLATES": Threshold(1, 8),
    "reactive.engine.compiler.queries.LARGE": Threshold(0),
    "reactive.engine.compiler.queries.MANY_RANGES": Threshold(0),
    "reactive.engine.compiler.queries.MANY_READERS": Threshold(0),
    "reactive.engine.remote.remote_tree.MOST_HERE": Threshold(0),
    "reactive.engine.dataflow.leaves.MANY": Threshold(0),
    "reactive.engine.transactions.row_gate.BATCHED_FROM": Threshold(0),
    "reactive.engine.collections.order.LONG": Threshold(2, 512),
    "reactive.engine.dataflow.discrimination.WORTHWHILE": Threshold(1),
    "reactive.engine.dataflow.key_readers.FEW_DROPPED": Threshold(0),
    "reactive.engine.codegen.emitter.LONGEST": Threshold(0),
    "reactive.engine.dataflow.schedule.BLOCK": Threshold(1),
    "reactive.engine.dataflow.schedule.MOST": Threshold(0),
    "reactive.engine.dataflow.schedule.MANY": Threshold(1),
    "reactive.engine.dataflow.graph.MANY_SCHEDULES": Threshold(0),
    "reactive.engine.collections.index.FEW": Threshold(0),
    "reactive.engine.collections.index.SAMPLED": Threshold(0),
    "reactive.engine.operators.bound_matching.FEW": Threshold(0),
    "reactive.engine.operators.loops.join_loops.MANY": Threshold(0),
    "reactive.engine.operators.loops.join_loops.FEW": Threshold(1_000_000),
    "reactive.engine.operators.loops.join_loops.MANY_TIMES": Threshold(0),
    "reactive.engine.operators.index_by.SEVERAL_FILLS": Threshold(0),
    "reactive.engine.runtime.collector.MANY": Threshold(1),
    "reactive.engine.runtime.collector.MOST": Threshold(0),
    "reactive.engine.collections.key_orders.MANY": Threshold(1),
    "reactive.engine.collections.merged_rows.MANY": Threshold(1),
    "reactive.engine.collections.range_index.WIDTH": Threshold(2),
    "reactive.engine.collections.suffix_sums.HEAVY": Threshold(1),
    "reactive.engine.operators.plain.MOST_NESTED": Threshold(2, 15),
    "reactive.engine.operators.order_by.MANY": Threshold(0),
    "reactive.engine.operators.tree.levels.MANY": Threshold(1),
    "optimizer.plans.shredding.LARGE": Threshold(1),
    "reactive.engine.operators.loops.grouped.MANY": Threshold(1),
    "reactive.engine.operators.loops.best_partners.FEW_PARTNERS": Threshold(1, 64),
    "reactive.engine.operators.loops.best_partners.FEW_READS": Threshold(0, 16),
    "reactive.engine.operators.loops.best_partners.BLOCK": Threshold(1),
    "reactive.engine.operators.loops.number_rounds.FEWEST": Threshold(1),
    "reactive.engine.operators.loops.settled_rounds.TRIES": Threshold(1),
    "reactive.engine.operators.loops.columns.UNLOADED": Threshold(1),
    "reactive.engine.operators.loops.columns.SAMPLED": Threshold(1, 256),
    "reactive.borders.offload.overflow.CALM": Threshold(1),
    "reactive.borders.offload.overflow.FRACTION": Threshold(1),
    "reactive.borders.offload.overflow.SOON": Threshold(1),
    "reactive.engine.collections.sorting.FEW": Threshold(1),
    "reactive.engine.collections.sorting.SAMPLED": Threshold(1, 8_192),
    "reactive.engine.collections.ranked.FEW": Threshold(1, 32),
    "reactive.engine.collections.ranked.LEAST": Threshold(1, 128),
    "reactive.engine.collections.ranked.LOAD": Threshold(2, 512),
    "reactive.engine.collections.ranked.MOST": Threshold(4, 1024),
    "reactive.engine.dataflow.schedule.LATEST": Threshold(0),
    "reactive.engine.dataflow.schedule.OFTEN": Threshold(0),
    "reactive.borders.durable.opening.BATCH": Threshold(1),
    "reactive.borders.durable.group.MOST": Threshold(1),
    "reactive.borders.durable.sqlite_tables.BATCH": Threshold(1),
    "reactive.engine.operators.windows.entries.FEW": Threshold(0, 8),
    "reactive.engine.operators.windows.entries.LOAD": Threshold(2, 256),
    "reactive.engine.operators.windows.entries.PEERS": Threshold(1, 8),
    "reactive.engine.operators.windows.near.CLOSE": Threshold(0, 16),
    "reactive.engine.operators.windows.function.NEAR": Threshold(0, 64),
    "reactive.languages.sql.terms.folding.LONGEST": Threshold(0),
    "reactive.languages.sql.statements.kept.LONGEST": Threshold(0),
    "reactive.languages.sql.statements.kept.MOST": Threshold(1),
    "optimizer.comprehensions.query.MOST_RECIPES": Threshold(1),
    "reactive.languages.sql.statements.kept.MOST_TRIES": Threshold(0),
    "reactive.languages.sql.statements.kept.MOST_VALUES": Threshold(0),
    "reactive.engine.operators.windows.partition.FEW": Threshold(1, 8),
    "reactive.engine.operators.windows.partition.MANY": Threshold(0, 4_096),
    "reactive.borders.sinks.gathered_changes.FEWEST": Threshold(0),
    "reactive.borders.durable.store.BATCH": Threshold(1, 10_000),
    "reactive.borders.sources.ingestion.REMEMBERED": Threshold(1, 1024),
    "reactive.borders.sources.files.blocks.LEAST": Threshold(0),
    "reactive.borders.sources.files.blocks.SIZE": Threshold(1, 1 << 16),
    "reactive.borders.sources.files.reading.CALM": Threshold(0),
    "reactive.borders.sources.files.reading.PIECE": Threshold(1),
    "reactive.borders.sources.files.reading.TAIL": Threshold(1),
    "reactive.borders.sources.files.row_maker.MOST": Threshold(0),
    "reactive.borders.sources.files.source.SIZE": Threshold(0),
    "reactive.borders.sources.postgres.notify.LIMIT": Threshold(0),
    "reactive.borders.sources.postgres.notify.SIZE": Threshold(1),
    "reactive.borders.sources.postgres.source.SIZE": Threshold(1),
    "reactive.engine.collections.reachability.FEWEST": Threshold(0),
    "reactive.engine.collections.reachability.SPARSE": Threshold(0),
    "reactive.engine.collections.reachability.WIDTH": Threshold(1),
    "reactive.engine.collections.reachability.FEW": Threshold(0),
    "reactive.engine.operators.fixpoint.fixpoint.ASKED": Threshold(1),
    "reactive.engine.operators.fixpoint.fixpoint.MANY": Threshold(1),
    "reactive.engine.operators.fixpoint.fixpoint.RATIO": Threshold(1),
    "reactive.engine.operators.fixpoint.closure.MANY": Threshold(0),
    "reactive.engine.collections.reachability.SHARE": Threshold(0),
    "reactive.engine.collections.trie.MANY_TIMES": Threshold(0),
    "reactive.engine.collections.values.MANY": Threshold(0),
    "reactive.engine.collections.group_values.MOST_NOTED": Threshold(0),
    "reactive.engine.collections.order_tree.FILLED": Threshold(2),
    "reactive.engine.collections.order_tree.LEAST": Threshold(1),
    "reactive.engine.collections.order_tree.MOST": Threshold(4),
    "reactive.engine.collections.long_tuple.SHARE": Threshold(1),
    "reactive.borders.objects.containers.container.FEW": Threshold(0),
    "reactive.borders.objects.containers.tracked_list.NEAR": Threshold(1),
    "reactive.engine.collections.bag_folds.MOST_KEPT": Threshold(1),
    "reactive.engine.collections.weight_tree.DEEPEST": Threshold(12, 60),
    "reactive.engine.collections.weight_tree.FEWEST": Threshold(0, 64),
    "reactive.engine.collections.weight_tree.LARGEST": Threshold(1),
    "reactive.engine.dataflow.node.LOOKED_AT": Threshold(1),
    "reactive.engine.storage.rows.LOOKED_AT": Threshold(1),
    "reactive.engine.storage.row_check.FEW": Threshold(0),
    "reactive.engine.dataflow.node.FEW": Threshold(0),
    "reactive.engine.remote.remote.RESERVE": Threshold(0),
    "reactive.borders.offload.spilling.PIECE": Threshold(1),
    "reactive.engine.dataflow.snapshot.PIECE": Threshold(1),
    "reactive.engine.storage.store.ROOMY": Threshold(0),
    "reactive.engine.remote.fragments.WRITTEN_OUT": Threshold(0),
    "reactive.engine.operators.loop.loop_recomputation.FEW": Threshold(0),
    "reactive.engine.operators.loop.loop_continuation.FEW": Threshold(0),
    "reactive.engine.operators.loop.loop_continuation.PART": Threshold(1),
    "reactive.engine.operators.loop.loop_continuation.LONGEST": Threshold(1),
    "reactive.engine.operators.loop.loop_recomputation.RATIO": Threshold(1),
    "reactive.engine.compiler.hops.STEPS_OF_ONE_ROUND": Threshold(1),
    "reactive.engine.operators.loops.whole_round.FEWEST": Threshold(1),
    "reactive.engine.operators.loops.whole_round.LONGEST": Threshold(1),
    "reactive.engine.operators.loops.whole_round.MOST_NODES": Threshold(0),
    "reactive.engine.operators.loops.whole_round.TRIES": Threshold(0),
}

NO_THRESHOLDS: dict[str, str] = {
    "reactive.api.commits.SHOWN": "a limit of shown facts",
    "reactive.api.obstacles.LONGEST": "a limit of shown text",
    "reactive.api.proofs.LONGEST": "a limit of shown text",
    "reactive.api.proofs.WIDTH": "a width of text",
    "reactive.engine.provenance.derivations.MOST": "a limit of proofs of the same height",
    "reactive.engine.provenance.derivations.SHOWN": "a limit of shown members",
    "reactive.engine.provenance.missing.DEEPEST": "a limit of ways that are looked for",
    "reactive.engine.provenance.missing.FOLLOWED": "a limit of ways that are looked for",
    "reactive.engine.provenance.missing.MOST": "a limit of ways that are looked for",
    "reactive.languages.sql.json.trees.LEAST": "integers beyond are floats",
    "reactive.languages.sql.json.trees.MOST": "integers beyond are floats",
    "reactive.languages.sql.queries.unnested.ALL_LEVELS": "stands for all levels",
    "reactive.languages.sql.runtime.lists.MOST": "longer lists are refused",
    "reactive.languages.sql.system.information_schema.MOST_OCTETS": "a size that Postgres tells",
    "reactive.languages.sql.system.listing.FIRST": "a number of objects that Postgres tells",
    "reactive.languages.sql.system.listing.USUAL": "a number of objects that Postgres tells",
    "reactive.languages.sql.system.postgres.BTREE": "a number of objects that Postgres tells",
    "reactive.languages.sql.system.postgres.HEAP": "a number of objects that Postgres tells",
    "reactive.languages.sql.system.postgres.OWNER": "a number of objects that Postgres tells",
    "reactive.languages.sql.system.postgres_types.DEFAULT_COLLATION": "a number of an object",
    "reactive.languages.sql.system.postgres_types.UNKNOWN": "a number of an object",
    "optimizer.plans.monotone.MIXED": "a direction",
    "reactive.engine.operators.fixpoint.group_relation.FINITE": "an index of a count",
    "reactive.engine.operators.fixpoint.group_relation.FOUNDED": "an index of a count",
    "reactive.engine.operators.fixpoint.group_relation.TOTAL": "an index of a count",
    "reactive.languages.datalog.preprocessor.MOST": "a limit of a language",
    "reactive.languages.sql.aggregates.calls.MOST": "a limit of a language",
    "reactive.languages.sql.functions.lambdas.MOST_KEPT": "callables that are kept",
    "optimizer.expr.FIRST_UNIQUE": "where numbers of indexes begin",
    "optimizer.kinds.fields.IMMUTABLE": "a flag of CPython",
    "optimizer.kinds.fields.MOST_OTHERS": "answers that are kept",
    "optimizer.kinds.fields.MOST_UNUSED": "generated classes that are kept",
    "optimizer.kinds.fields.TEMPORARY": "where numbers of classes begin",
    "optimizer.lifting.readings.MOST_READINGS": "readings that are kept",
    "reactive.engine.collections.distinct_sketch.BITS": "bits of a hash",
    "reactive.engine.collections.distinct_sketch.LEAST_BITS": "what `error=` may be",
    "reactive.engine.collections.distinct_sketch.MOST_BITS": "what `error=` may be",
    "reactive.engine.collections.zset.FEWEST_KEPT": "rows that are kept for whoever asks next",
    "reactive.borders.durable.file_lock.PLACE": "a place in a file",
    "reactive.borders.sinks.durable_outbox.MANY": "rows that are written together",
    "reactive.languages.sql.runtime.numbers.MOST_FACTORS": "what a HUGEINT holds",
    "optimizer.comprehensions.rows.ROUNDS": "beyond it types of a recursion are not known",
    "optimizer.plans.nodes.sources.LONGEST": "what is shown",
    "optimizer.plans.nodes.sources.SHOWN": "what is shown",
    "reactive.api.family.MOST_SHOWN": "what is shown",
    "reactive.api.comprehending.MOST_ROUNDS": "beyond it recursions are taken not to end",
    "reactive.languages.datalog.definitions.MOST": "deeper components are refused",
    "reactive.languages.datalog.included.MOST": "deeper includes are refused",
    "optimizer.plans.declared_kinds.MOST": "nodes that are looked through",
    "reactive.engine.codegen.loop_expressions.DEEPEST": "levels that Python can compile",
    "reactive.engine.codegen.loop_expressions.LARGEST": "nodes that Python can compile",
    "reactive.engine.runtime.large_stack.LIMIT": "frames",
    "reactive.engine.runtime.large_stack.STACK": "bytes",
    "reactive.borders.sources.postgres.values.TIMESTAMPTZ": "a number of a type",
    "optimizer.expressions.order_kinds.DIGITS": "a size of numbers",
    "reactive.languages.datalog.tokens.WIDEST": "what is shown",
    "reactive.languages.sql.expressions.arithmetic.MOST_CHECKS": "levels of generated code",
    "optimizer.kinds.instants.DEEPEST": "levels of containers",
    "reactive.languages.sql.expressions.arithmetic.MOST_DIGITS": "a size of numbers",
    "reactive.languages.sql.functions.arrays.MOST": "longer series are refused",
    "reactive.languages.sql.runtime.numbers.MOST_PLACES": "greater numbers are refused",
    "reactive.languages.sql.runtime.texts.LARGEST": "longer texts are refused",
    "reactive.languages.sql.runtime.templates.MOST": "wider places are refused",
    "reactive.languages.sql.runtime.templates.MOST_DIGITS": "more digits are refused",
    "reactive.languages.sql.runtime.arrays.MOST_ELEMENTS": "longer series are refused",
    "reactive.languages.sql.sqlite.formats._MOST": "greater widths are refused",
    "reactive.languages.sql.postgres.moments.DAY": "the length of a day",
    "reactive.languages.sql.runtime.intervals.DAY": "the length of a day",
    "reactive.languages.sql.runtime.intervals.DAYS_OF_MONTH": "the length of a month",
    "reactive.languages.sql.sqlite.times.DAY": "the length of a day",
    "reactive.languages.sql.sqlite.times.EPOCH": "the day on which times of POSIX begin",
    "reactive.languages.sql.sqlite.times.GREATEST": "the last instant of SQLite",
    "reactive.languages.sql.sqlite.json.DEEPEST": "deeper JSON is refused",
    "reactive.languages.sql.sqlite.values.GREATEST": "a size of numbers",
    "reactive.languages.sql.sqlite.values.LEAST": "a size of numbers",
    "reactive.languages.sql.sqlite.values._EXACT": "a size of numbers",
    "reactive.languages.sql.terms.errors.LONGEST": "letters that are searched for a name",
    "reactive.languages.sql.runtime.units.FIRST": "a day",
    "reactive.languages.sql.functions.arrays.MOST_LEVELS": "deeper arrays are refused",
    "reactive.languages.sql.json.path_reader._DEEPEST": "deeper paths are refused",
    "reactive.engine.collections.jsonb.MOST_LEVELS": "deeper JSON is refused",
    "reactive.engine.collections.jsonb._MOST_DIGITS": "longer numbers are refused",
    "reactive.engine.collections.jsonb._MOST_PLACES": "longer numbers are refused",
    "reactive.languages.sql.entry.MOST_LEVELS": "levels that fit on a stack",
    "reactive.languages.sql.postgres.numerics.DIGITS": "a size of numbers",
    "reactive.languages.sql.postgres.numerics.MOST": "larger numbers are refused",
    "reactive.languages.sql.postgres.numerics.WORD": "a size of numbers",
    "reactive.languages.sql.postgres.number_formats._WIDTH": "the width of a number in a text of "
    "Postgres",
    "reactive.languages.sql.postgres.number_reader._SCALE_OF_SHIFTED": "digits that Postgres keeps",
    "reactive.languages.sql.postgres.patterns.LONGEST": "patterns that are kept",
    "reactive.languages.sql.postgres.times.DAY": "the length of a day",
    "reactive.languages.datalog.formulas.MOST": "more alternatives are refused",
    "reactive.languages.datalog.functors.MOST_BITS": "larger powers are refused",
    "reactive.languages.datalog.functors.MOST_NUMBERS": "longer ranges are refused",
    "reactive.languages.datalog.functors.UNSIGNED_BITS": "a size of numbers",
    "reactive.languages.datalog.analysis.MOST": "more bodies are refused",
    "reactive.borders.frames.export.COMMITS": "what is kept, if it is not said",
    "reactive.borders.frames.loading.PIECE": "how often it is told how far a load is",
    "reactive.borders.mirrors.publishing.FIRST": "seconds",
    "reactive.borders.mirrors.publishing.LONGEST": "seconds",
    "reactive.borders.mirrors.publishing.PATIENCE": "seconds",
    "reactive.borders.frames.arrow_columns.BLOCK": "rows whose fields are read together",
    "reactive.borders.frames.arrow_columns.PLACES": "digits of a type of Arrow",
    "reactive.database.PATIENCE": "seconds that closing waits for a source",
    "reactive.borders.two_commits.participants.IN_ERROR": "a state of libpq",
    "reactive.borders.two_commits.of_sqlalchemy.IDLE": "a status of libpq",
    "reactive.borders.two_commits.joint.PATIENCE": "seconds that a cancellation waits",
    "reactive.borders.two_commits.rereading.ATTEMPTS": "readings before others have to wait",
    "reactive.borders.two_commits.rereading.CONFIRMS": "seconds until it is read once more",
    "reactive.borders.two_commits.rereading.FIRST": "seconds until it is read again",
    "reactive.borders.two_commits.rereading.LONGEST": "seconds between two readings",
    "reactive.borders.durable.group.DELAY": "seconds until a group is written",
    "reactive.borders.durable.sqlite_store.EVERY": "seconds between two looks at files that are "
    "open",
    "reactive.borders.durable.rows.values.LEAST": "the least number of 64 bits",
    "reactive.borders.durable.rows.values.MOST": "the greatest number of 64 bits",
    "reactive.borders.durable.sqlite_store.CHECKPOINT": "pages of SQLite's log",
    "reactive.borders.durable.sqlite_file.FORMAT": "the number of a format",
    "reactive.borders.durable.sqlite_store.PAGE": "bytes of a page of a new file of SQLite",
    "reactive.borders.durable.sqlite_store.PATIENCE_MS": "milliseconds that a locked file is "
    "waited for",
    "reactive.borders.durable.sqlite_tables.MOST_VALUES": "values of a statement of SQLite",
    "reactive.borders.durable.sqlite_tables.TOGETHER": "rows that a statement of SQLite inserts",
    "reactive.borders.sinks.sink.PATIENCE": "seconds that stopping waits for a batch",
    "reactive.borders.durable.postgres_store.FORMAT": "the number of a format",
    "reactive.borders.durable.postgres_store.PATIENCE": "seconds that a server is asked again",
    "reactive.borders.durable.postgres_store.PAUSE": "seconds",
    "reactive.borders.durable.store.DIGEST": "bytes of a digest",
    "reactive.borders.durable.store.LONGEST": "letters of a name",
    "reactive.borders.sources.ingestion.PATIENCE": "seconds that stopping waits for a source",
    "reactive.borders.sources.postgres.schema.STEP": "seconds",
    "reactive.borders.sources.postgres.feed.EPOCH": "the year 2000",
    "reactive.borders.sources.postgres.feed.BEGIN": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.COMMIT": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.DELETE": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.INSERT": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.NULL": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.RELATION": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.TEXT": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.TRUNCATE": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.UNCHANGED": "a letter of the protocol",
    "reactive.borders.sources.postgres.feed.UPDATE": "a letter of the protocol",
    "reactive.borders.sources.postgres.stream.GRACE": "seconds",
    "reactive.borders.sources.postgres.stream.REMEMBERED": "notes of changed columns that are kept",
    "reactive.borders.sources.postgres.notify.IN_USE": "seconds",
    "reactive.borders.sources.postgres.stream.LONGEST": "letters of a name",
    "reactive.borders.sources.postgres.stream.OLDEST": "a version of Postgres",
    "reactive.borders.sources.postgres.stream.MOMENT": "seconds",
    "reactive.borders.sources.postgres.stream.STEP": "seconds",
    "reactive.borders.sources.postgres.source.MOMENT": "seconds",
    "reactive.borders.sources.postgres.stream.ASKED": "seconds",
    "reactive.borders.sources.batch.NOWHERE": "a mark",
    "reactive.borders.sources.files.reading.LONG_TICK": "a resolution of clocks",
    "reactive.borders.sources.files.reading.TICK": "a resolution of clocks",
    "reactive.borders.sources.files.source.GRACE": "seconds until a file that is unreadable is "
    "told",
    "reactive.borders.sources.files.source.SOON": "seconds",
    "reactive.borders.sources.files.reading.EVERY": "seconds",
    "reactive.borders.sources.files.reading.LONGEST": "milliseconds",
    "reactive.borders.sources.files.reading.PAUSE": "milliseconds",
    "reactive.borders.sources.files.reading.SHARE": "a share of the time",
    "reactive.borders.sources.files.reading.STEP": "milliseconds",
    "reactive.borders.sources.ingest.MOMENT": "seconds",
    "reactive.borders.durable.rows.packed.REST": "seconds",
    "reactive.borders.durable.sqlite_tables.FORMAT": "a version of what is stored",
    "reactive.borders.durable.kept_views.EVERY": "seconds",
    "reactive.borders.durable.kept_views.SHARE": "a share of the time",
    "reactive.borders.durable.kept_views.GROWN": "a ratio of times",
    "optimizer.callables.reachable_objects.DEEPEST": "which tables that callables read are found",
    "reactive.engine.collections.sampled_size.DEEPEST": "how well sizes are guessed",
    "reactive.engine.collections.sampled_size.EVERY": "how well sizes are guessed",
    "reactive.engine.dataflow.node.BESIDE": "a size of lists",
    "reactive.engine.remote.remote_operator.BESIDE": "a size of lists",
    "optimizer.callables.captures.DEEPEST": "which changes of captured variables are told",
    "optimizer.plans.fingerprint.DEEPEST": "how deep calls of functions are read",
    "optimizer.callables.captures.SMALL": "which captured containers are frozen",
    "optimizer.callables.captures.MOST_CALLED": "how many called functions are searched",
    "optimizer.expressions.operand_checks.LARGEST": "ints beyond it may be too large for a float",
    "optimizer.expressions.operand_checks.MOST_OPERATIONS": "products of more may be too large",
    "optimizer.expressions.cuts.EXACT": "ints beyond it are not exact as floats",
    "optimizer.expressions.cuts.LARGEST": "products of larger numbers may be infinite",
    "optimizer.expressions.cuts.MOST_OPERATIONS": "products of more may be infinite",
    "optimizer.expressions.turns.EITHER": "a sign that is not known",
    "optimizer.expressions.turns.SPAN": "the microseconds of the years 1000 to 9000",
    "optimizer.expressions.simplification.LARGEST": "numbers beyond it are not folded",
    "optimizer.callables.captures.FROM_HERE": "references",
    "optimizer.plans.explain.CHARACTER": "a size in a picture",
    "optimizer.plans.explain.INDENTED": "how deep lines are indented",
    "optimizer.plans.explain.LINE": "a size in a picture",
    "optimizer.plans.explain.LONGEST": "where lines in a picture are cut",
    "optimizer.plans.explain.MARGIN": "a size in a picture",
    "optimizer.rewriting.optimize.LARGEST_GROWTH": "beyond it rules are taken not to end",
    "optimizer.rewriting.optimize.MOST_PASSES": "beyond it rules are taken not to end",
    "reactive.engine.codegen.cycle_rows.NOTHING": "a variable that none has",
    "optimizer.callables.syntax.FAR": "a line that no text has",
    "optimizer.callables.syntax.FUTURES": "flags of the compiler",
    "optimizer.plans.factorization.LEFT": "a side",
    "optimizer.plans.factorization.RIGHT": "a side",
    "optimizer.expressions.text.AND": "a precedence",
    "optimizer.expressions.text.ATOM": "a precedence",
    "optimizer.expressions.text.COMPARISON": "a precedence",
    "optimizer.expressions.text.LONGEST": "what is shown",
    "optimizer.expressions.text.NOT": "a precedence",
    "optimizer.expressions.text.OR": "a precedence",
    "optimizer.expressions.text.POWER": "a precedence",
    "optimizer.expressions.text.TEST": "a precedence",
    "optimizer.expressions.text.UNARY": "a precedence",
    "reactive.engine.operators.loops.best_partners.TAME": "a limit of floats",
    "reactive.engine.operators.loops.rounded_columns.ROUNDING": "a property of floats",
    "reactive.engine.operators.loops.rounded_columns.SMALLEST": "a property of floats",
    "reactive.engine.operators.loops.columns.EXACT": "a limit of floats",
    "reactive.engine.operators.loops.number_rounds.WIDEST": "a limit of floats",
    "reactive.engine.operators.loops.columns.GREATEST": "a limit of floats",
    "reactive.engine.compiler.lineage.MOST": "which updates are told as such",
    "reactive.engine.dataflow.error_notes.LONGEST_ROW": "what is shown",
    "reactive.engine.collections.exact.BITS": "a scale, read at import",
    "reactive.engine.operators.fixpoint.loops.RISEN": "a round, not a size",
    "reactive.engine.collections.suffix_sums.BYTES": "an estimate",
    "reactive.engine.operators.sums_beyond.DIGITS": "a scale",
    "reactive.engine.operators.sums_beyond.EXACT": "a size of numbers",
    "reactive.engine.operators.sums_beyond.LARGEST": "a size of numbers",
    "reactive.engine.operators.sums_beyond.UNIT": "a scale",
    "reactive.engine.collections.exact.FRACTION": "a scale",
    "reactive.api.rings.SCALE": "a scale",
    "reactive.engine.collections.exact.DOWN": "a scale",
    "reactive.engine.collections.exact.UP": "a scale",
    "reactive.engine.collections.exact.UNIT": "a scale",
    "reactive.engine.codegen.functions.MOST_TEXTS": "the size of a cache, read at import",
    "reactive.api.display.LIMIT": "what is shown",
    "reactive.api.display.MOST_TYPES": "what is shown",
    "reactive.api.family.SHOWN": "what is shown",
    "reactive.engine.reference.bags.STRIDE": "a factor",
    "reactive.engine.reference.bags.TRIED": "pairs on which a condition is tried",
    "reactive.engine.remote.remote.BEFORE": "a version",
    "reactive.engine.remote.remote_operator.FILL": "a barrier",
    "reactive.engine.remote.flush.MOST": "threads",
    "reactive.engine.remote.fragments.WORTH": "what is said of a recursion",
    "optimizer.lifting.folds.DEEPEST": "calls of calls, of which fewer are read",
    "optimizer.lifting.readings.PARTS": "parts of a tuple",
    "optimizer.plans.fingerprint.LENGTH": "digits of a fingerprint",
    "optimizer.plans.forms.MOST_FORMS": "the size of a cache, read at import",
    "reactive.engine.compiler.templates.MOST_SHAPES": "the size of a cache, read at import",
    "reactive.engine.runtime.lock.BROKEN": "a state",
    "reactive.engine.runtime.lock.IDLE": "a state",
    "reactive.engine.runtime.lock.LONGEST_SLEEP": "seconds",
    "reactive.engine.runtime.lock.LONGEST_WAIT": "seconds",
    "reactive.engine.runtime.interrupts.DEEPEST": "frames, of which the library has so many",
    "reactive.engine.runtime.interrupts.LATER": "seconds",
    "reactive.engine.operators.aggregate.SHOWN": "a place in a list",
    "reactive.engine.operators.aggregate.WEIGHT": "a place in a list",
    "reactive.engine.operators.fixpoint.fixpoint.MOST_SHOWN": "what is shown",
    "reactive.engine.operators.fixpoint.growth.ALL_ROUNDS": "rounds whose rows are measured",
    "reactive.engine.operators.fixpoint.growth.FEW_ROUNDS": "rounds whose rows are not measured",
    "reactive.engine.operators.fixpoint.growth.MOST_BYTES": "larger rows are refused",
    "reactive.engine.operators.fixpoint.growth.ROUNDS_BETWEEN": "rounds whose rows are measured",
    "reactive.engine.operators.fixpoint.growth.ROWS_PER_GIVEN": "more rows are refused",
    "reactive.engine.operators.fixpoint.growth.SAMPLE": "rows that are measured",
    "reactive.engine.operators.order_by.LOADED": "a place",
    "reactive.engine.operators.order_by.EXCHANGED": "a place",
    "reactive.engine.operators.order_by.EXCHANGE_COST": "a factor",
    "reactive.engine.operators.closing.OF_ROW": "the place that tells a row from a watermark",
    "reactive.engine.operators.frontiers.ITEMS": "a limit of what is analyzed: others stay",
    "reactive.engine.operators.loop.loop_recomputation.MOST_SHOWN": "what is shown",
    "reactive.engine.compiler.inner_graph.MOST_TOUCHED": "no bound",
    "reactive.engine.reference.verify.ROUNDING": "a factor",
    "reactive.api.iterate.MANY": "rounds after which a loop is taken not to settle",
    "reactive.engine.operators.order_by.NEGATIVE": "a place",
    "reactive.engine.operators.set_operators.FEW": "of tuples that are shared, read at import",
    "reactive.engine.runtime.progress.EVERY": "rows between two looks at a clock",
    "reactive.engine.runtime.progress.LONGEST": "what is shown",
    "reactive.engine.runtime.progress.PATIENCE": "seconds",
    "reactive.engine.collections.ranked.WIDTH": "bytes",
    "reactive.engine.operators.fixpoint.derivations.GIVEN": "a round",
    "reactive.api.subscriptions.subscribe._OWN": "references",
    "reactive.engine.runtime.timer.LINGERS": "seconds",
    "reactive.engine.collections.values.SORTED_LIST": "bytes",
    "reactive.engine.collections.long_tuple.FEW": "users see of what class a value is",
    "reactive.engine.collections.long_tuple.SALT": "a part of hashes",
    "reactive.engine.dataflow.delivery_queue.MOST_ROUNDS": "a bound",
    "reactive.engine.collections.zset.NESTED": "levels that a value may have",
    "reactive.engine.runtime.large_stack.NESTED": "levels that a value may have",
    "reactive.borders.sources.files.formats.PIECE": "a limit of what is read of a file",
    "reactive.borders.sources.files.reading.LARGE": "a limit of what is read of a file",
    "reactive.borders.sources.files.texts.MAX_BYTES": "a limit of what is read of a file",
    "reactive.borders.sources.files.texts.MAX_LINE": "a limit of what is read of a file",
    "reactive.borders.sources.files.texts.MAX_RATIO": "a limit of what is read of a file",
    "reactive.borders.sources.files.texts.SHOWN": "a limit of what is read of a file",
    "reactive.borders.sources.files.texts.EVERY": "how often an end is looked for",
    "reactive.languages.sql.runtime.automaton.END": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.automaton.KNOWN": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.automaton.LETTERS": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.automaton.MOST": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.automaton.MOST_PLACES": "a limit of patterns, or a code of "
    "theirs",
    "reactive.languages.sql.runtime.automaton.SCAN": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.automaton.STATES": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.runtime.wildcards.KEPT": "a limit of patterns, or a code of theirs",
    "reactive.languages.sql.statements.target.NO_KEY": "less than all keys of SQLite",
    "reactive.languages.sql.statements.target.GREATEST_KEY": "the greatest key of SQLite",
    "reactive.engine.dataflow.delivery_queue.SLOW": "seconds",
    "reactive.engine.dataflow.delivery_queue.STUCK": "seconds",
    "reactive.engine.dataflow.discrimination.OFTEN": "how often bytes are estimated",
    "reactive.engine.dataflow.discrimination.OVERHEAD": "bytes",
    "reactive.engine.dataflow.discrimination.SAMPLED": "rows that are looked at for an estimate",
    "reactive.borders.objects.changes.SEED": "a seed",
    "reactive.borders.objects.changes.EVERY": "a share",
    "reactive.borders.objects.silent.AS_ONE": "a divisor",
    "reactive.borders.objects.containers.container.NOTED": "a divisor",
    "reactive.engine.collections.frozen_dict.SALT": "a part of hashes",
    "reactive.engine.collections.frozen_dict.MASK": "a modulus",
    "reactive.engine.collections.weight_tree.BITS": "a scale, read at import",
    "reactive.engine.collections.weight_tree.PER_VALUE": "bytes",
    "reactive.engine.collections.weight_tree.PRIME": "a modulus",
    "reactive.engine.collections.weight_tree.SALT": "a part of hashes",
    "reactive.engine.collections.weight_tree.SIZE": "a place in a list",
    "reactive.engine.collections.weight_tree.WIDTH": "a scale",
    "reactive.engine.reference.verify.MOST": "what is shown",
    "reactive.engine.collections.zset.NAN": "a value",
    "optimizer.plans.closures.ENOUGH_ROUNDS": "what the user has said",
}

WIDE = (
    "reactive.engine.dataflow.schedule.MOST",
    "reactive.engine.dataflow.schedule.MANY",
    "reactive.engine.dataflow.graph.MANY_SCHEDULES",
    "reactive.engine.transactions.commit.MANY",
)
"""Thresholds whose lowest values keep a commit from being one generated function."""
WRITTEN = ("compose.LARGEST", "evaluated.LONGEST", "lift.DEEPEST", "lift.LARGEST", "lift.LONGEST")
"""Thresholds whose lowest values leave callables unread, and so disable nearly all else."""

Settings = Mapping[str, int]
SHIPPED: Settings = {}
LOWEST: Settings = {
    name: threshold.highest if name in WIDE or name.endswith(WRITTEN) else threshold.lowest
    for name, threshold in THRESHOLDS.items()
}
WALKED: Settings = {**LOWEST, **{name: THRESHOLDS[name].lowest for name in WIDE}}
HIGHEST: Settings = {name: threshold.highest for name, threshold in THRESHOLDS.items()}
WAYS: Mapping[str, Settings] = {
    "as shipped": SHIPPED,
    "at their lowest": LOWEST,
    "walked at their lowest": WALKED,
    "at their highest": HIGHEST,
}


def drawn(random: Random) -> Settings:
    """Some of them at their lowest, some at their highest, and some as they are."""
    found: dict[str, int] = {}
    for name, threshold in THRESHOLDS.items():
        match random.randrange(4):
            case 0 | 1:
                found[name] = threshold.lowest
            case 2:
                found[name] = threshold.highest
    if any(
        name.startswith("reactive.engine.collections.ranked.") for name in found
    ):  # these fit each other
        ranked = [
            name for name in THRESHOLDS if name.startswith("reactive.engine.collections.ranked.")
        ]
        found.update({name: THRESHOLDS[name].lowest for name in ranked})
    return found


@contextmanager
def thresholds(settings: Settings) -> Iterator[None]:
    """The library with these values, in databases that are made, used and closed within."""
    before = {name: _of(name) for name in settings}
    templates.SHAPES.clear()
    try:
        for name, value in settings.items():
            _set(name, value)
        yield
    finally:
        templates.SHAPES.clear()
        for name, value in before.items():
            _set(name, value)
        _put_back_in_stand_ins()


@cache
def _stand_ins() -> list[tuple[Lazy, list[str]]]:
    """The stand-ins for modules, each with the names of its thresholds."""
    ours = [
        m for name, m in list(sys.modules.items()) if name.startswith(("reactive", "optimizer"))
    ]
    found = {id(v): v for module in ours for v in vars(module).values() if type(v) is Lazy}
    known = [name.rpartition(".") for name in THRESHOLDS]
    return [(v, [last for of, _, last in known if of == v._name]) for v in found.values()]


def _put_back_in_stand_ins() -> None:
    """Give stand-ins the thresholds of their modules, of which they keep what they read first."""
    for stand_in, names in _stand_ins():
        for name in vars(stand_in).keys() & names:
            setattr(stand_in, name, getattr(import_module(stand_in._name), name))


def _of(name: str) -> int:
    module, _, constant = name.rpartition(".")
    found = getattr(import_module(module), constant)
    assert type(found) is int, name
    return found


def _set(name: str, value: int) -> None:
    module, _, constant = name.rpartition(".")
    setattr(import_module(module), constant, value)
