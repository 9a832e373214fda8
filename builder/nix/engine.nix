/**
  The expression that `builder build --engine nix` evaluates: the cells of one kernel. It calls the functions of the
  flake, so that a cell has the same derivation in both. `builder/engine/nix.py` writes `request`, which is JSON.
*/
{ request }:
let
  inherit (builtins) fromJSON readFile;
  plain = builtins.unsafeDiscardStringContext;

  library = import ./.;
  inherit (library)
    cells
    compilers
    config
    matrix
    ;

  asked = fromJSON request;
  root = /. + asked.kernel;
  kernel = config.load root;

  host = builtins.fromTOML (readFile ./host/host.toml);
  locked = (fromJSON (readFile (/. + asked.lock))).nodes.nixpkgs.locked;
  nixpkgs = import (builtins.fetchTree (removeAttrs locked [ "lastModified" ])) { inherit (asked) system; };
  set = cells.prepare (packageSet // { pinnedCompilers = asked.pinned-compilers or false; });
  packageSet =
    if asked.set == "nixpkgs" then
      library.nixpkgs { pkgs = nixpkgs; }
    else if asked.set == "host" then
      library.host {
        inherit (asked) system;
        settings = host // (asked.settings or { });
      }
    else
      import (/. + asked.set) { inherit (asked) system; };

  # The cells of this system, and of the systems that are compiled for here.
  known = builtins.foldl' (
    found: system:
    cells.select kernel {
      inherit system;
      inherit (matrix) sets;
      unbundled = true;
    }
    // found
  ) { } ([ asked.system ] ++ (asked.others or [ ]));
  build = cells.build set {
    inherit root kernel;
    inherit (asked) options;
    perFile = asked.per-file or false;
    locked = asked.locked or true;
  };
  wheel =
    tag: pinned:
    let
      drv = set.wheels.${tag}.${pinned.file};
    in
    {
      inherit (pinned) file sha256;
      out = plain drv.outPath;
    };
  brought = kernel: {
    digest = kernel.tree.name;
    out = plain kernel.tree.outPath;
  };
  planned =
    name:
    let
      cell = known.${name};
      why = cells.missing set cell;
      drv = build cell;
      found = cells.environment set kernel cell;
      chosen = compilers.of set cell;
      tested = cells.testEnvironment set {
        inherit root kernel;
        inherit (asked) options;
      } cell;
    in
    if why != null then
      { missing = why; }
    else
      {
        drv = plain drv.drvPath;
        out = plain drv.outPath;
        compilers = if chosen.tree == null then null else plain chosen.tree.outPath;
        kernels = if drv.kernels == null then [ ] else map brought drv.kernels;
        wheels = map (wheel found.tag) (
          found.wheels ++ (if tested == null then [ ] else tested.wheels) ++ cells.toolWheels set found.tag "builder"
          ++ (if asked.per-file or false then cells.toolWheels set found.tag "compiled-files" else [ ])
        );
      };
  each = library.util.genAttrs asked.variants;
in
{
  plan = each planned;
  cells = each (name: build known.${name});
}
