/**
  The program `builder` in the store: the part that builds a cell, and all of it.
*/
{ util, ... }:
let
  inherit (builtins)
    any
    elem
    head
    pathExists
    readFile
    substring
    stringLength
    ;
  inherit (util) hasPrefix hasSuffix;

  # In a checkout templates/ and cmake/ are next to the package, in an installed wheel inside it.
  checkout = pathExists ../../templates;
  root = if checkout then ../.. else ../.;
  base = toString root;

  tops = [
    "builder"
    "templates"
    "cmake"
    "docs"
  ];
  # The list of the files that decide the bytes of a wheel; build keys are made of the same list.
  decides = fromTOML (readFile ../data/decides-bytes.toml);

  # The modules that compile a single file of a cell.
  caching = [
    "builder/files.py"
    "builder/compile_cache/__init__.py"
    "builder/compile_cache/caches.py"
    "builder/compile_cache/derivation.py"
    "builder/compile_cache/folder.py"
    "builder/compile_cache/session.py"
  ];

  inside = path: substring (stringLength base + 1) (stringLength path) path;

  # The path that a file of an installed package has in the repository.
  ofRepository =
    path:
    let
      name = inside path;
      resources = "_resources/";
    in
    if checkout then
      name
    else if hasPrefix resources name then
      substring (stringLength resources) (stringLength name) name
    else
      "builder/${name}";

  within = name: entry: name == entry || hasPrefix "${entry}/" name;
  above = name: entry: hasPrefix "${name}/" entry;

  among =
    included: path: type:
    let
      name = ofRepository path;
    in
    !(elem name decides.exclude)
    && (
      any (within name) included
      || type == "directory" && (name == "builder/_resources" || any (above name) included)
    );

  clean =
    path: type:
    let
      top = head (util.segments (inside path));
    in
    (!checkout || elem top tops)
    && baseNameOf path != "__pycache__"
    && !(hasPrefix "." (baseNameOf path))
    && !(hasSuffix ".pyc" path)
    && (type == "regular" || type == "directory");
in
{
  /**
    The files that build a cell.
  */
  core = builtins.path {
    name = "builder-core";
    path = root;
    filter = path: type: clean path type && among decides.include path type;
  };

  /**
    The files that compile a single file of a cell, and build a cell from such files.
  */
  caching = builtins.path {
    name = "builder-core";
    path = root;
    filter = path: type: clean path type && among (decides.include ++ caching) path type;
  };

  /**
    All files of `builder`.
  */
  whole = builtins.path {
    name = "builder-source";
    path = root;
    filter = clean;
  };

  /**
    The folder, relative to `core` and `whole`, that Python imports from.
  */
  inherit checkout;
}
