/**
  The libraries of the CUDA toolkit that a kernel is linked to, and the parts of the pin file with their wheels, by the
  rules of `builder/config/libraries.py`.
*/
{ util, config, matrix, ... }:
let
  inherit (builtins)
    concatMap
    elem
    filter
    readFile
    ;

  facts = fromTOML (readFile ../data/libraries.toml);

  # Nix ignores a library that it does not know; Python refuses it.
  isFor =
    backend: name:
    facts ? ${name} && (!(facts.${name} ? backends) || elem backend facts.${name}.backends);
in
{
  /**
    The parts of the pin file with the libraries of a cell. A table whose `when` holds for no GPU counts for nothing.

    # Type
    partsOf :: Config -> Cell -> [ String ]
  */
  partsOf =
    kernel: cell:
    let
      isPresent = table: matrix.mayHold cell (table.when or { });
      isMember = part: !(part ? extension) || isPresent (kernel.extension.${part.extension} or { });
      components = filter isMember (config.partsOf kernel cell.backend);
      # Bindings have no `when`, and an extension that has a component here is present.
      tables = filter isPresent (config.tables kernel components);
      names = filter (isFor cell.backend) (concatMap (table: table.libraries or [ ]) tables);
    in
    util.unique (map (name: facts.${name}.part) (filter (name: facts.${name} ? part) names));
}
