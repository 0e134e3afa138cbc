"""From supervision and data to a trained network."""
