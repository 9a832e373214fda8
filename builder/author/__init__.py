"""Help the author of a kernel: run its own tests, open a shell with its tools, and build at each save."""
