/**
  The compilers of `--toolchain pinned`, as they are in the store of `builder`, which fetches and unpacks them; here they
  are a fixed-output derivation of the same files, under the same name.
*/
_:
let
  inherit (builtins)
    concatStringsSep
    fromTOML
    readFile
    replaceStrings
    substring
    ;

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
    derivation {
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
      outputHashMode = "recursive";
      outputHashAlgo = "sha256";
      outputHash = facts.hash;
      preferLocalBuild = true;
    };
in
{
  /**
    What a cell is compiled with: the tree, the variables that name it, and folders of programs; no tree for the compilers
    of the package set, which a wheel without code and the compiler of oneAPI need not be told.

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
        # Those for another system are found by their names.
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
