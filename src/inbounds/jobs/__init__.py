"""The same work on many machines: a manifest of it, one piece a line, and those who do lines: processes, Slurm, Ray."""
