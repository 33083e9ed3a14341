"""How a recursive relation is kept up to date: its facts, and the ways to derive them."""
