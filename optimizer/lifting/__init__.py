"""From a callable to an expression.

Lives here: translation of syntax to expressions, and the reasons why some cannot be translated.
Comes in:   `Opaque`.
Goes out:   `Lifted`.
May import: `callables`, `expressions`.
"""
