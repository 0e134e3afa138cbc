"""A run as a folder: what decides it, where it stands, and the networks it keeps."""
