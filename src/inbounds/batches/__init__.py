"""From a store to batches of tensors on a device."""
