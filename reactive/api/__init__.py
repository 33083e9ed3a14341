"""Objects that users work with: tables, relations, views, aggregates, recursion.

Lives here:  the classes and functions that `reactive` exports, and their text and HTML.
Comes in:    the user's callables and rows.
Goes out:    plans; rows.
May import:  `engine`, `subscriptions`; a border by its name, where a method needs it.
"""
