"""The parts of texts: types, values, columns, names, dialects and errors."""
