"""How the work grows with the size of what is asked."""
