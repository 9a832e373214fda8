/**
  The packages of a load test that the build's environment lacks: the imported ones that come with torch, and
  those of `python-depends`, if they are pinned. The rule is that of `builder/loadtest/packages.py`.
*/
{ util, config, sources, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    elem
    filter
    foldl'
    readFile
    replaceStrings
    ;

  facts = fromTOML (readFile ../data/dependencies.toml);

  known = foldl' (all: table: table // all) facts.brought (attrValues facts.python);

  distribution = name: known.${name}.package;

  # Whether a file of the kernel imports a module; one that nothing imports is not installed. Python searches the same
  # text.
  mentions =
    root: kernel: module:
    any (
      path:
      let
        text = readFile (root + "/${path}");
      in
      replaceStrings [ "import ${module}" "from ${module}" ] [ "" "" ] text != text
    ) (sources.modules root kernel);

  brought =
    root: kernel: backend:
    filter (name: elem backend facts.brought.${name}.backends && mentions root kernel name) (attrNames facts.brought);
in
{
  /**
    The parts of the pin file with the packages of a cell's load test.

    # Type
    parts :: Path -> Config -> Cell -> [ String ]
  */
  parts =
    root: kernel: cell:
    map distribution (
      util.unique (
        config.declared "python-depends" kernel cell.backend
        ++ (if cell.framework == "tvm-ffi" || cell.framework == "ctypes" then [ ] else brought root kernel cell.backend)
      )
    );
}
