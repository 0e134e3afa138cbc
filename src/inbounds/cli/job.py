"""`python -m inbounds.cli.job FOLDER`: the job of a studio's training, whose commands run within this program."""

from __future__ import annotations

import sys
from pathlib import Path

from inbounds.cli import app, run_program
from inbounds.studio.job import main

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), lambda words: run_program(app, "inbounds", words)))
