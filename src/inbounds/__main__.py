"""`python -m inbounds` is `inbounds`."""

from inbounds.cli import run

run()
