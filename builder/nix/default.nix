/**
  The pure library: builtins alone, so that it evaluates with no nixpkgs and no network.

  Facts come from `builder/data`, which Python reads too; a derivation takes its tools from a package set
  (see `docs/nix.md`), which is the last argument of what makes one.
*/
let
  util = import ./util.nix;
in
{
  inherit util;
  config = import ./config.nix { };
  matrix = import ./matrix.nix { inherit util; };
  pins = import ./pins.nix { inherit util; };
  headers = import ./headers.nix { inherit util; };
  sources = import ./sources.nix { inherit util; };
  tool = import ./tool.nix { inherit util; };
  environment = import ./environment.nix { inherit util; };
  cells = import ./cells.nix { inherit util; };
  shell = import ./shell.nix { inherit util; };
  outputs = import ./outputs.nix { };
  nixpkgs = import ./nixpkgs.nix { };
}
