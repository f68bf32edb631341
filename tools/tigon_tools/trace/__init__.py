"""Understand: load a reference, trace it forward and backward, state the facts."""
