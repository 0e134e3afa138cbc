"""What is released, and what it is built and tested with: outside the package, and not in its wheel."""
