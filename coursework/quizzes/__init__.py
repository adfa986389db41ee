"""The lessons' multiple-choice questions, one module a unit, out of sight of the cell that asks them."""
