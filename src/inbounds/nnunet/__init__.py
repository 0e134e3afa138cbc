"""nnU-Net v2 with bounds: what is known of a data set, and a trainer that nnU-Net finds."""
