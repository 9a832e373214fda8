"""Say what this machine has for building, and what a kernel lacks here."""
