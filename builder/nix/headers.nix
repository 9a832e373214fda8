/**
  The header-only libraries of a kernel, each as a pinned wheel or as the commit of a tag. The rules are those of
  `builder/render/external_sources.py` and `builder/make/header_folders.py`.
*/
{ util, config, ... }:
let
  inherit (builtins)
    attrValues
    concatMap
    elemAt
    filter
    listToAttrs
    readFile
    replaceStrings
    split
    ;

  facts = fromTOML (readFile ../data/cutlass.toml);
  components = (fromTOML (readFile ../data/dependencies.toml)).component;

  library =
    name:
    let
      version = components.${name}.cutlass or null;
      known = facts.${if version == null then name else "cutlass"};
    in
    known
    // {
      inherit version;
      wheel = known.wheels.${toString version} or null;
      commit = known.commits.${toString version} or null;
    };

  of =
    kernel: backend:
    let
      names = util.unique (concatMap (part: part.depends or [ ]) (config.partsOf kernel backend));
    in
    map library (filter (name: name != "torch" && components ? ${name}) names);

  wheel =
    pinned:
    let
      pieces = split "==" pinned.requirement;
      name = elemAt pieces 0;
      version = elemAt pieces 2;
    in
    {
      inherit name version;
      inherit (pinned) sha256;
      file = "${replaceStrings [ "-" ] [ "_" ] name}-${version}-py3-none-any.whl";
      index = null;
    };

  known = concatMap (library: map wheel (attrValues (library.wheels or { }))) (attrValues facts);
in
{
  /**
    The wheels of every library, by file.

    # Type
    wheels :: { String = Wheel; }
  */
  wheels = util.keyed "file" known;

  /**
    The wheels of the libraries that a kernel's components of a backend depend on.

    # Type
    wheelsOf :: Config -> String -> [ Wheel ]
  */
  wheelsOf =
    kernel: backend:
    map (library: wheel library.wheel) (filter (library: library.wheel != null) (of kernel backend));

  /**
    The folders of those libraries that have no wheel, by the CMake variable that names each. Nix fetches their commits
    during evaluation; a commit is a hash of its content.

    # Type
    foldersOf :: Config -> String -> { String = Path; }
  */
  foldersOf =
    kernel: backend:
    listToAttrs (
      map (library: {
        name = library.variable;
        value =
          (builtins.fetchGit {
            url = library.source;
            ref = "refs/tags/v${library.version}";
            rev = library.commit;
          }).outPath;
      }) (filter (library: library.wheel == null && library.commit != null) (of kernel backend))
    );
}
