"""The paper, table by table: one file of settings each, what the paper found, and what brings the two together.

A package of the repository, not of the wheel: it uses inbounds, never the reverse.
"""
