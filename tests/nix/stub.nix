/**
  builder's flake with the stub of nixpkgs: whether each output evaluates, and the skipped cells.
*/
let
  outputs = (import ../../builder/nix).outputs.flake {
    examples = ../../examples;
    selected = import ./select.nix;
  } {
    self = { };
    nixpkgs.legacyPackages = {
      x86_64-linux = import ./nixpkgs.nix { };
      aarch64-linux = import ./nixpkgs.nix {
        system = "aarch64-linux";
        rocm = false;
      };
      aarch64-darwin = import ./nixpkgs.nix {
        system = "aarch64-darwin";
        rocm = false;
      };
    };
  };
  evaluated = builtins.mapAttrs (_: drv: builtins.isString drv.drvPath);
in
{
  packages = builtins.mapAttrs (_: evaluated) outputs.packages;
  shells = builtins.mapAttrs (_: evaluated) outputs.devShells;
  checks = builtins.mapAttrs (_: evaluated) outputs.checks;
  inherit (outputs.legacyPackages.x86_64-linux) released skipped;
}
