/**
  The sources of a cell that Nix can compile each by itself. A derivation of one has the content of that source and of
  the files that it may include, so an edit of another source leaves it as it is. Of other files it has the names, on
  which objects depend: a new header may hide one that was found before.

  Nothing here has to be right for the wheel to be: what was compiled from too little is compiled again in the cell.
*/
{ util, sources }:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    fromTOML
    genericClosure
    groupBy
    isAttrs
    isList
    map
    readFile
    replaceStrings
    split
    stringLength
    substring
    toJSON
    ;
  inherit (util) genAttrs hasPrefix hasSuffix;

  # Files of a kernel that no `#include` finds, as `builder/make/ccache.py` has them, and that are not compiled.
  neverIncluded = [
    ".cmake"
    ".md"
    ".py"
    ".pyi"
    ".toml"
  ];

  # What a file has that is compiled against Python's headers: one such file decides the command of all.
  ofPython = [
    "Py"
    "pybind11"
    "torch/csrc/"
    "torch/extension.h"
    "torch/python.h"
  ];

  # Folders of torch's headers that have none of Python's.
  withoutPython = [
    "torch/csrc/stable/"
    "torch/csrc/inductor/aoti_torch/"
    "torch/csrc/inductor/aoti_runtime/"
  ];

  mentions =
    words: text: replaceStrings (withoutPython ++ words) (withoutPython ++ map (_: "") words) text != text;

  # Where a source reads files that are no headers, the whole project is in the key of every object; where a header has the
  # name of the ops, that name is: then no object can be compiled before the cell.
  needsProject = mentions [
    "incbin"
    "#embed"
    "# embed"
  ];
  hasOpsName = mentions [ "_EXTENSION_NAME" ];

  lines = text: filter (line: !(isList line)) (split "\n" text);

  /**
    A file without what only matters where it is compiled.
  */
  outline = text: concatStringsSep "" (map (line: "${line}\n") (filter (mentions (ofPython ++ [ "include" ])) (lines text)));

  # What the `#include` lines of a text name; a macro's name stands for any file.
  included = text: map (found: elemAt found 1) (
    filter isList (split "#[ \t]*include(_next)?[ \t]*([<\"][^>\"\n]*|[A-Za-z_])" text)
  );

  lastPart = name: baseNameOf (substring 1 (stringLength name) name);
  spelled = name: hasPrefix "<" name || hasPrefix "\"" name;

  toTOML =
    value:
    if isAttrs value then
      "{${concatStringsSep ", " (map (name: "${toJSON name} = ${toTOML value.${name}}") (attrNames value))}}"
    else if isList value then
      "[${concatStringsSep ", " (map toTOML value)}]"
    else
      toJSON value;

  # The config without the version of the kernel and what a wheel has besides its library, which no object has.
  configText =
    root:
    let
      table = fromTOML (readFile (root + "/build.toml"));
      general = table.general // (if table.general ? version then { version = 1; } else { });
      same =
        table
        // {
          inherit general;
        }
        // (
          if table ? wheel then
            {
              wheel = removeAttrs table.wheel [
                "data"
                "readme"
                "requires"
                "version"
              ];
            }
          else
            { }
        );
    in
    concatStringsSep "" (map (name: "${toJSON name} = ${toTOML same.${name}}\n") (attrNames same));
in
{
  inherit ofPython withoutPython neverIncluded;

  /**
    The sources of a cell, each with what its derivation is given: files by their paths in the kernel, and texts.
    None where links make the source set the whole folder, where sources are generated or of other projects, or where
    every object depends on the whole project.

    # Type
    of :: Path -> Config -> Cell -> [ { source :: String, kernel :: { files, texts } } ]
  */
  of =
    root: kernel: cell:
    let
      all = sources.files root kernel;
      compiled = sources.compiled root kernel cell.backend;
      endsWith = suffixes: path: any (suffix: hasSuffix suffix path) suffixes;
      isCode = path: elem path compiled || endsWith sources.headers path;
      code = filter isCode all;
      text = genAttrs code (path: readFile (root + "/${path}"));
      named = genAttrs code (path: included text.${path});
      byName = groupBy baseNameOf code;
      next =
        path:
        if any (name: !(spelled name)) named.${path} then
          code
        else
          concatMap (name: byName.${lastPart name} or [ ]) named.${path};
      reached =
        source:
        map (found: found.key) (genericClosure {
          startSet = [ { key = source; } ];
          operator = found: map (key: { inherit key; }) (next found.key);
        });
      generated = "torch-ext/registration.h";
      together =
        kernel ? sources
        || kernel ? generate
        || any (path: needsProject text.${path}) code
        || any (path: !(elem path compiled) && path != generated && hasOpsName text.${path}) code;
      # Computed once for all sources: texts, outlines and store paths.
      python = any (path: mentions ofPython text.${path}) code;
      short = genAttrs code (path: if python then outline text.${path} else "");
      stored = genAttrs code (
        path:
        builtins.path {
          name = "source";
          path = root + "/${path}";
        }
      );
      others = filter (path: !(endsWith neverIncluded path) && !(isCode path)) all;
      base =
        genAttrs others (_: "")
        // {
          "${sources.package kernel}/__init__.py" = "";
          "build.toml" = configText root;
        };
      given =
        source:
        let
          whole = reached source;
          content = genAttrs whole (path: stored.${path});
        in
        {
          inherit source;
          kernel = {
            files = content;
            texts = base // removeAttrs short whole;
          };
        };
    in
    if all == null || cell.framework == "torch-noarch" || together then [ ] else map given compiled;
}
