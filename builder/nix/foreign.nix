/**
  The foreign sources of a kernel: the tree of a commit, or an archive as it is published. The rules are those of
  `builder/render/external_sources.py`; a build unpacks archives.
*/
{ util, config, ... }:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    filter
    ;

  entries =
    kernel: backend:
    concatMap (table: (table.src or [ ]) ++ (table.include or [ ])) (
      config.tables kernel (config.partsOf kernel backend)
    );

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
    derivation (
      util.fixed "flat" source.sha256
      // {
        name = if plain then file else "${name}-archive";
        system = "builtin";
        builder = "builtin:fetchurl";
        inherit (source) url;
        executable = false;
        unpack = false;
        impureEnvVars = [
          "http_proxy"
          "https_proxy"
          "no_proxy"
        ];
      }
    );
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
