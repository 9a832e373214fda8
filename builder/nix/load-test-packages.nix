/**
  What a load test has after the environment of the build: what torch brings and what `python-depends` names, as far
  as it is pinned. The rule is that of `builder/loadtest/packages.py`.
*/
{ util, sources }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    elem
    filter
    foldl'
    fromTOML
    map
    readFile
    replaceStrings
    ;

  facts = fromTOML (readFile ../data/dependencies.toml);

  known = foldl' (all: table: table // all) facts.brought (attrValues facts.python);

  distribution = name: known.${name}.package;

  declared =
    kernel: backend:
    (kernel.general.python-depends or [ ]) ++ (kernel.general.${backend}.python-depends or [ ]);

  # Python reads the same text: what nobody imports is not installed.
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
    The parts of the pin file that the load test of a cell has.

    # Type
    parts :: Path -> Config -> Cell -> [ String ]
  */
  parts =
    root: kernel: cell:
    map distribution (
      util.unique (
        declared kernel cell.backend
        ++ (if cell.framework == "tvm-ffi" || cell.framework == "ctypes" then [ ] else brought root kernel cell.backend)
      )
    );
}
