"""The rules: functions from a plan node to a plan node, itself where they do not apply.

Lives here: one file a rule, whose header says why it holds, and what it needs.
Comes in:   a node of a plan.
Goes out:   a node with the same rows.
May import: `callables`, `expressions`, `lifting`, `plans`.
"""
