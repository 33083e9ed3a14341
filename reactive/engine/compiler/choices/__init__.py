"""The ways to run a query, a module each, in the order of trial.

In: a node of the logical plan. Out: a node of the physical plan, or None if the way does not fit.
May import: the physical plan and the chooser.
"""

from __future__ import annotations

from reactive.engine.compiler.choices.apply_operator import apply_operator
from reactive.engine.compiler.choices.have_values import have_values
from reactive.engine.compiler.choices.join_cycles import join_cycles
from reactive.engine.compiler.choices.join_intervals import join_intervals
from reactive.engine.compiler.choices.join_multiway import join_multiway
from reactive.engine.compiler.choices.look_up import look_up
from reactive.engine.compiler.choices.look_up_events import look_up_events
from reactive.engine.compiler.choices.match_rows import match_rows
from reactive.engine.compiler.choices.probe_indexes import probe_indexes
from reactive.engine.compiler.choices.read_places import read_places
from reactive.engine.compiler.choices.run_closure import run_closure
from reactive.engine.compiler.choices.run_fixpoint import run_fixpoint
from reactive.engine.compiler.choices.run_loop import run_loop
from reactive.engine.compiler.choices.run_offloaded import run_offloaded
from reactive.engine.compiler.choices.run_pipeline import run_pipeline
from reactive.engine.compiler.choices.scan import scan
from reactive.engine.compiler.choices.shred_nest import shred_nest
from reactive.engine.compiler.choices.sum_beyond import sum_beyond
from reactive.engine.compiler.choices.sum_sides import sum_sides
from reactive.engine.compiler.chooser import Rule

CHOICES: tuple[Rule, ...] = (
    *(shred_nest, run_offloaded, scan, have_values, run_closure, run_fixpoint, run_loop),
    *(sum_beyond, sum_sides, join_cycles, join_multiway, join_intervals),
    *(probe_indexes, match_rows),
    *(look_up, look_up_events, read_places, run_pipeline, apply_operator),
)
