"""The operators of the graph: each turns the deltas of its inputs into the delta of its output.

Lives here:  one file per family of operators, whose header states law, state and cost; operators
             with generated loops (`loops/`), recursion (`fixpoint/`), loops, and nests (`tree/`).
Comes in:    deltas, and the plan nodes that operators are made from.
Goes out:    deltas, which `undo` reverts and `commit` makes final.
May import:  `storage`, `codegen`, `collections`, `runtime`.
"""
