"""Compare two builds of a kernel, and say which changes break what their versions promise."""
