"""A run as a folder: what it was told, where it stands, and the networks it keeps."""
