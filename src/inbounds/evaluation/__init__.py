"""How good a predicted mask is: overlap, surface and size, per slice and per volume."""
