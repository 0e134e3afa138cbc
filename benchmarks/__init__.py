"""How long training takes, measured: what `make bench` runs."""
