"""The primitives, one family a file."""
