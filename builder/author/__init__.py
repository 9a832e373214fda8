"""Work on a kernel: its own tests, a shell with its tools, and its files as they are saved."""
