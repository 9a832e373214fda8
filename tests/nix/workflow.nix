/**
  The outputs that workflows of public kernel repositories use, from a flake such as theirs.
*/
{ asked }:
let
  inherit (builtins) fromJSON attrNames mapAttrs;
  given = fromJSON asked;
  library = import ../../builder/nix;
  outputs = library.outputs.genKernelFlakeOutputs {
    legacyPackages = {
      x86_64-linux = import ./nixpkgs.nix { };
      aarch64-linux = import ./nixpkgs.nix {
        system = "aarch64-linux";
        rocm = false;
      };
    };
  } {
    self = {
      rev = "0123456789012345678901234567890123456789";
    };
    path = /. + given.kernel;
  };
  # As `nix build .#name` finds it.
  found = system: outputs.legacyPackages.${system} // outputs.packages.${system};
  evaluates = drv: builtins.isString drv.drvPath;
in
mapAttrs (
  system: _:
  let
    all = found system;
  in
  {
    backendBundle = attrNames all.backendBundle;
    backendCi = attrNames all.backendCi;
    ciTests = attrNames all.ciTests;
    packages = attrNames outputs.packages.${system};
    inherit (all) variants;
    cells = mapAttrs (_: drv: drv.cells) all.backendCi;
    layout = all.default.drvPath == all.bundle.drvPath;
    commit = all.bundle.commit or null;
    evaluated = builtins.all evaluates (
      builtins.attrValues outputs.packages.${system}
      ++ builtins.attrValues all.backendBundle
      ++ builtins.attrValues all.backendCi
      ++ builtins.attrValues all.ciTests
    );
    derivations = builtins.all (drv: drv.type or "" == "derivation") (builtins.attrValues outputs.packages.${system});
  }
) outputs.packages
