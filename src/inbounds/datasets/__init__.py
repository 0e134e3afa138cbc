"""From an archive, or from nothing, to slices with their truth."""
