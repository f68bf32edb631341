"""A Liger checkout: its layout, edits of its files, its style, what changed in it."""
