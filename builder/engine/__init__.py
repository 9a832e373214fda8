"""What builds cells: this machine, or Nix."""
