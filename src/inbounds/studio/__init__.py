"""A page in the browser on which people click, type rough sizes, train, look and correct."""
