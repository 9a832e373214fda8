/**
  Libraries of the CUDA toolkit that a kernel is linked to, and the parts of the pin file that bring them. The rules are
  those of `builder/config/libraries.py`.
*/
{
  util,
  config,
  matrix,
}:
let
  inherit (builtins)
    attrValues
    concatMap
    elem
    filter
    fromTOML
    map
    readFile
    ;

  facts = fromTOML (readFile ../data/libraries.toml);

  # A library that Nix does not know is for Python to refuse.
  isFor =
    backend: name:
    facts ? ${name} && (!(facts.${name} ? backends) || elem backend facts.${name}.backends);
in
{
  /**
    The parts of the pin file that the libraries of a cell are in, without those of tables that it has for no GPU.

    # Type
    partsOf :: Config -> Cell -> [ String ]
  */
  partsOf =
    kernel: cell:
    let
      isPresent = table: matrix.mayHold cell (table.when or { });
      isMember = part: !(part ? extension) || isPresent (kernel.extension.${part.extension} or { });
      ofBackend = filter (part: part.backend == cell.backend) (attrValues (kernel.kernel or { }));
      components = filter isMember ofBackend;
      tables = [
        (kernel.torch or { })
        (kernel.tvm-ffi or { })
        (kernel.ctypes or { })
      ]
      ++ config.extensionsOf kernel components
      ++ filter isPresent components;
      names = filter (isFor cell.backend) (concatMap (table: table.libraries or [ ]) tables);
    in
    util.unique (map (name: facts.${name}.part) (filter (name: facts.${name} ? part) names));
}
