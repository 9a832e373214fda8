"""The engines that build cells: this machine, or Nix."""
