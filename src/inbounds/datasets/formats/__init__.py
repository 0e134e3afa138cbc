"""One small reader and writer per file format; `inbounds.datasets.scan` chooses among them."""
