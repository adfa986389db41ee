"""Drawings of single lessons, out of the way of what the lessons compute. One module a unit."""
