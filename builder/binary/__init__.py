"""What a shared object says of itself: symbols, links, device code, and the manylinux policies it meets."""
