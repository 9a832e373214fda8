/**
  The sources of a cell that Nix can compile one by one. The derivation of a source has the content of that source and
  of the files that it may include, so an edit of another source does not change it. It has the names of all other
  files, because an object depends on them: a new header may hide one that was found before.

  A mistake here cannot make a wrong wheel: an object that was compiled without all of its files is compiled again in
  the cell.
*/
{ util, sources, ... }:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    elemAt
    filter
    genericClosure
    groupBy
    isAttrs
    isList
    readFile
    replaceStrings
    split
    stringLength
    substring
    toJSON
    ;
  inherit (util) genAttrs hasPrefix hasSuffix;

  # Words in a file that is compiled against Python's headers; one such file decides the compile command of all.
  ofPython = [
    "Py"
    "pybind11"
    "torch/csrc/"
    "torch/extension.h"
    "torch/python.h"
  ];

  # Folders of torch's headers that include none of Python's.
  withoutPython = [
    "torch/csrc/stable/"
    "torch/csrc/inductor/aoti_torch/"
    "torch/csrc/inductor/aoti_runtime/"
  ];

  mentions =
    words: text: replaceStrings (withoutPython ++ words) (withoutPython ++ map (_: "") words) text != text;

  # If a source reads files that are not headers, the key of every object has the whole project. If a header has the
  # name of the ops, every key has that name. In both cases no object can be compiled before the cell.
  needsProject = mentions [
    "incbin"
    "#embed"
    "# embed"
  ];
  hasOpsName = mentions [ "_EXTENSION_NAME" ];

  lines = text: filter (line: !(isList line)) (split "\n" text);

  /**
    The lines of a file that matter to files which do not include it.
  */
  outline = text: concatStringsSep "" (map (line: "${line}\n") (filter (mentions (ofPython ++ [ "include" ])) (lines text)));

  # The names in the `#include` lines of a text; the name of a macro stands for any file.
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

  # The config without the keys that no object depends on: the version of the kernel, and the other files of its wheel.
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
  inherit ofPython withoutPython;

  /**
    The sources of a cell, each with the input of its derivation: files by their paths in the kernel, and texts. The
    list is empty if links make the source set the whole folder, if sources are generated or from other projects, or if
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
      isCode = path: elem path compiled || endsWith sources.names.headers path;
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
      others = filter (path: !(endsWith sources.names.never-compiled path) && !(isCode path)) all;
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
