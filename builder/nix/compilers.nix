/**
  The compilers of `--toolchain pinned`: a fixed-output derivation of the files that `builder` fetches and unpacks into
  its own store, under the same name.
*/
{ util, ... }:
let
  inherit (builtins) concatStringsSep readFile replaceStrings substring;

  table = fromTOML (readFile ../data/compilers.toml);
  systems = fromTOML (readFile ../data/systems.toml);

  nameOf =
    target: hash:
    let
      digits = replaceStrings [ "sha256-" "+" "/" "=" ] [ "" "-" "_" "" ] hash;
    in
    "${target}-${substring 0 32 digits}";

  tree =
    set: target: facts:
    derivation (
      util.fixed "recursive" facts.hash
      // {
        name = nameOf target facts.hash;
        inherit (set) system;
        builder = set.shell;
        args = [
          "-euc"
          ''
            echo "error: the pinned compilers are not in Nix's store" >&2
            echo "  help: builder build --engine nix --toolchain pinned" >&2
            exit 1
          ''
        ];
        PATH = concatStringsSep ":" set.path;
      }
    );
in
{
  /**
    The pinned compilers of a cell: their tree, the variables that name them, and their folders for PATH. All are empty
    for a cell that takes the compilers of the package set, that has no code, or that oneAPI compiles.

    # Type
    of :: PackageSet -> Cell -> { tree :: Derivation | null, variables :: AttrSet, path :: [ String ] }
  */
  of =
    set: cell:
    let
      target = cell.system;
      facts = table.target.${target};
      root = tree set target facts;
      program = name: "${root}/usr/bin/${systems.${target}.triple}-${name}-${facts.version}";
    in
    if !(set.pinnedCompilers or false) || cell.framework == "torch-noarch" || cell.backend == "xpu" then
      {
        tree = null;
        variables = { };
        path = [ ];
      }
    else if set.system != table.runs-on then
      throw "no compilers are pinned that run on ${set.system}"
    else
      {
        tree = root;
        path = [ "${root}/usr/bin" ];
        # Compilers for another system are found by their names on PATH.
        variables =
          if target != set.system then
            { }
          else
            {
              CC = program "gcc";
              CXX = program "g++";
            };
      };
}
