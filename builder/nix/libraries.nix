/**
  Libraries of the CUDA toolkit that a kernel is linked to, and the parts of the pin file that bring them. The rules are
  those of `builder/config/libraries.py`.
*/
{ util, config }:
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
    The parts of the pin file that a kernel's libraries for a backend are in.

    # Type
    partsOf :: Config -> String -> [ String ]
  */
  partsOf =
    kernel: backend:
    let
      components = filter (part: part.backend == backend) (attrValues (kernel.kernel or { }));
      tables = [
        (kernel.torch or { })
        (kernel.tvm-ffi or { })
      ]
      ++ config.extensionsOf kernel components
      ++ components;
      names = filter (isFor backend) (concatMap (table: table.libraries or [ ]) tables);
    in
    util.unique (map (name: facts.${name}.part) (filter (name: facts.${name} ? part) names));
}
