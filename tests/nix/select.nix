/**
  The shared cases of the matrix in Nix: whether each file agrees. The same files test Python.
*/
let
  inherit (builtins)
    attrNames
    concatMap
    fromTOML
    listToAttrs
    map
    readDir
    readFile
    ;

  inherit (import ../../builder/nix) config matrix;

  cases = ../data/select;

  found =
    file:
    let
      case = fromTOML (readFile (cases + "/${file}"));
      among = concatMap matrix.rows (case.sets or [ "release" ]);
      cells = matrix.select { unbundled = case.all or false; } (config.upgrade file case.config) among;
      facts = {
        expected = map (cell: cell.variant) cells;
        systems = map (cell: cell.system) cells;
        torch = map (cell: cell.torch) cells;
      };
    in
    {
      name = file;
      value = {
        agrees = facts == { inherit (case) expected systems torch; };
        inherit facts;
      };
    };
in
listToAttrs (map found (attrNames (readDir cases)))
