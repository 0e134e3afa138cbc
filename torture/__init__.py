"""What kills, broken files and large amounts do to the package: what `make torture` runs."""
