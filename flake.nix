{
  description = "Reproducible wheels for GPU kernels: every torch, backend and ABI, from one build.toml";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    inputs:
    (import ./builder/nix).outputs.flake {
      examples = ./examples;
      selected = import ./tests/nix/select.nix;
    } inputs;
}
