"""The rules: functions from a plan node to a plan node, itself where they do not apply.

Lives here: one file per rule; its header says why the rule is sound, and its conditions.
Comes in:   a node of a plan.
Goes out:   a node with the same rows.
May import: `callables`, `expressions`, `lifting`, `plans`.
"""
