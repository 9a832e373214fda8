/**
  `builder` itself in the store: the part that builds a cell, and the whole.
*/
{ util }:
let
  inherit (builtins)
    any
    elem
    head
    pathExists
    substring
    stringLength
    toString
    ;
  inherit (util) hasPrefix hasSuffix;

  # In a checkout templates/ and cmake/ lie beside the package, in an installed wheel inside it.
  checkout = pathExists ../../templates;
  root = if checkout then ../.. else ../.;
  base = toString root;
  package = if checkout then "builder" else "";

  tops = [
    "builder"
    "templates"
    "cmake"
  ];
  # What has no part in the build of a cell: a change there builds nothing again.
  apart = [
    "ci"
    "cli"
    "engine"
    "index"
    "lint"
    "nix"
    "plan"
    "report"
    "data/matrix.toml"
    "data/pins.toml"
    "data/runners.toml"
  ];

  inside = path: substring (stringLength base + 1) (stringLength path) path;

  ofPackage =
    path:
    let
      name = inside path;
    in
    if checkout then substring (stringLength package + 1) (stringLength name) name else name;

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
    What builds a cell.
  */
  core = builtins.path {
    name = "builder-core";
    path = root;
    filter =
      path: type:
      clean path type
      && !(any (part: ofPackage path == part || hasPrefix "${part}/" (ofPackage path)) apart);
  };

  /**
    All of it.
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
