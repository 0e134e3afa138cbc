"""Files in and out: formats, archives, headers, geometry. Knows nothing of stores."""
