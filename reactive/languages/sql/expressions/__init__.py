"""Expressions: values, and conditions that are true exactly where SQL says TRUE."""
