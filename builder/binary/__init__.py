"""Read shared objects: symbols, links, device code, and the manylinux policies that they meet."""
