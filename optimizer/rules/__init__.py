"""The rules: functions from a plan node to a plan node, itself where they do not apply."""
