"""The prepared data set: from scans to a folder of arrays, with its labels and facts."""
