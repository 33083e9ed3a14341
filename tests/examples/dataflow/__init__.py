"""The recursive examples over graphs."""
