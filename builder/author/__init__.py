"""Help the author of a kernel: run the kernel's tests, open a shell with its tools, and build at each save."""
