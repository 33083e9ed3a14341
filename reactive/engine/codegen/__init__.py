"""Code generation: from expressions to functions, as readable source text, compiled.

Lives here:  the writer of expressions, the bodies of loops, their sinks, the names in the code.
Comes in:    expressions (`optimizer.expr`) and chains of linear plan nodes.
Goes out:    Python functions, and their source.
May import:  `collections`, `runtime`.
"""
