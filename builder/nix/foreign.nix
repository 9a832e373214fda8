/**
  The foreign sources of a kernel: the tree of a commit, or an archive as it is published. The rules are those of
  `builder/render/sources.py`; a build unpacks archives.
*/
{ util, config }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    filter
    ;

  entries =
    kernel: backend:
    let
      parts = filter (part: part.backend == backend) (attrValues (kernel.kernel or { }));
      tables = [
        (kernel.torch or { })
        (kernel.tvm-ffi or { })
        (kernel.ctypes or { })
      ]
      ++ config.extensionsOf kernel parts
      ++ parts;
    in
    concatMap (table: (table.src or [ ]) ++ (table.include or [ ])) tables;

  # A commit is a hash of its content, so this is pure.
  commit =
    source:
    (builtins.fetchGit {
      url = source.git;
      inherit (source) rev;
      allRefs = true;
      submodules =
        !(builtins.elem (source.submodules or false) [
          false
          [ ]
        ]);
    }).outPath;

  # The name that `nix-store --add-fixed sha256 FILE` gives, so that a file may be added by hand.
  archive =
    name: source:
    let
      file = baseNameOf source.url;
      plain = builtins.match "[A-Za-z0-9+_?=-][A-Za-z0-9+._?=-]*" file != null;
    in
    derivation {
      name = if plain then file else "${name}-archive";
      system = "builtin";
      builder = "builtin:fetchurl";
      inherit (source) url;
      executable = false;
      unpack = false;
      outputHash = source.sha256;
      outputHashAlgo = "sha256";
      outputHashMode = "flat";
      preferLocalBuild = true;
      impureEnvVars = [
        "http_proxy"
        "https_proxy"
        "no_proxy"
      ];
    };
in
{
  /**
    The trees and archives that the build of a kernel for a backend reads, by name.

    # Type
    of :: Config -> String -> { String = Path; }
  */
  of =
    kernel: backend:
    let
      sources = kernel.sources or { };
      isUsed = name: any (util.hasPrefix "${name}:") (entries kernel backend);
      used = filter isUsed (attrNames sources);
    in
    util.genAttrs used (
      name: if sources.${name} ? git then commit sources.${name} else archive name sources.${name}
    );
}
