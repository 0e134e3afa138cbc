"""The paper, table by table: one file of settings each, what the paper found, and what brings the two together."""
