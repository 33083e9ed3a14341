"""State of a connection: settings, prepared statements and the path of schemas."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Session:
    """State of a connection, or of the database itself, that its statements have set."""

    settings: dict[str, str] = field(default_factory=dict)
    """Values that SET has given, by the folded names of settings."""
    prepared: dict[str, str] = field(default_factory=dict)
    """Texts of prepared statements, by their folded names."""
    path: tuple[str, ...] = ()
    """The folded names of schemas in which tables without one are looked for; "" is the usual
    schema. It is the only one in an empty path."""
