"""Each kind of value over each border, and back."""
