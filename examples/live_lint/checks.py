"""All checks. A new one is a function like the others, and its name in `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from examples.live_lint.finding import Finding
from examples.live_lint.function_checks import (
    missing_super_init,
    override_parameters,
    unreachable_definition,
    unused_parameter,
    unused_private,
    wrong_arguments,
)
from examples.live_lint.import_checks import (
    import_cycle,
    missing_module,
    missing_name,
    undefined_export,
    unused_import,
)
from examples.live_lint.local_checks import (
    duplicate_definition,
    duplicate_test,
    hidden_exception,
    mutable_default,
    syntax_error,
)
from examples.live_lint.relations import file_and_line
from examples.live_lint.tables import Tables
from reactive import Relation

Check: TypeAlias = Callable[[Tables], Relation[Finding]]

CHECKS: tuple[Check, ...] = (
    syntax_error,
    unused_import,
    undefined_export,
    missing_module,
    missing_name,
    import_cycle,
    unused_private,
    unreachable_definition,
    unused_parameter,
    override_parameters,
    missing_super_init,
    wrong_arguments,
    duplicate_definition,
    duplicate_test,
    mutable_default,
    hidden_exception,
)


def name_of(check: Check) -> str:
    """The name of a check, as findings have it."""
    return check.__name__.replace("_", "-")


def findings(check: Check, t: Tables) -> Relation[Finding]:
    """Return the findings of a check on lines without a `noqa` comment, each once."""
    audible = check(t).anti_join(t.silenced, left_key=file_and_line, right_key=file_and_line)
    return audible.distinct()


def description(check: Check) -> str:
    """Return one sentence about the findings of a check."""
    return (check.__doc__ or "").partition("\n")[0]
