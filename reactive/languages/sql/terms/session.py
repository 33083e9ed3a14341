"""State of a connection: settings, prepared statements and the path of schemas."""

from __future__ import annotations


class Session:
    """State of a connection, or of the database itself, that its statements have set."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        """Values that SET has given, by the folded names of settings."""
        self.prepared: dict[str, str] = {}
        """Texts of prepared statements, by their folded names."""
        self.path: tuple[str, ...] = ()
        """The folded names of schemas in which tables without one are looked for; "" is the usual
        schema. It is the only one in an empty path."""
