"""How a recursive relation is kept up to date: its rows, and the delta rules that derive them."""
