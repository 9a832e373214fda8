/**
  The pin file: the wheels of each environment. The rules are those of `builder/pins/__init__.py`.
*/
{ util, ... }:
let
  inherit (builtins)
    all
    attrNames
    attrValues
    compareVersions
    concatMap
    elem
    elemAt
    filter
    groupBy
    head
    isList
    length
    listToAttrs
    mapAttrs
    readFile
    sort
    split
    ;
  inherit (util) findFirst reverse unique;

  table = fromTOML (readFile ../data/pins.toml);

  published = listToAttrs (
    concatMap (
      part:
      concatMap (
        system:
        concatMap (
          python:
          map (name: {
            inherit name;
            value = part.index;
          }) part.wheels.${system}.${python}
        ) (attrNames part.wheels.${system})
      ) (attrNames (part.wheels or { }))
    ) (filter (part: part ? index) table.part)
  );

  wheels = mapAttrs (
    file: facts:
    facts
    // {
      inherit file;
      index = published.${file} or null;
    }
  ) table.wheel;

  byName = groupBy (part: part.name) table.part;

  # A reference is the name of a part; a slash and a toolkit follow where the toolkit is not that of the cell.
  split' = reference: filter (piece: !(isList piece)) (split "/" reference);

  serves =
    pieces: need: part:
    let
      compute = if length pieces > 1 then elemAt pieces 1 else need.compute;
    in
    (!(part ? version) || part.version == need.version)
    && (!(part ? compute) || elem compute part.compute)
    && ((part.tested or true) || compute == need.compute && !(need.tested or false));

  # The files of a part for a Python on a system; null where nothing is pinned.
  filesOf =
    need: part:
    let
      ofSystem = part.wheels.${need.system} or { };
      found = ofSystem.${need.python} or (ofSystem.any or [ ]);
    in
    if part.requires == [ ] then
      [ ]
    else if found == [ ] then
      null
    else
      found;

  ofReference =
    need: reference:
    let
      pieces = split' reference;
      parts = filter (serves pieces need) (byName.${head pieces} or [ ]);
    in
    findFirst (found: found != null) null (map (filesOf need) parts);

  ofRecipe =
    need: recipe:
    let
      found = map (ofReference need) recipe;
    in
    if all (files: files != null) found then unique (concatMap (files: files) found) else null;

  pinned =
    need: python:
    findFirst (found: found != null) null (
      map (ofRecipe (need // { inherit python; })) (table.environment.${need.recipe} or [ ])
    );

  newestFirst = sort (left: right: compareVersions left right > 0) (
    unique (map (part: part.version) (filter (part: part ? version && (part.tested or true)) table.part))
  );

  # The environment that loads a wheel without code, as in `Pins.of_plain_torch`.
  ofPlainTorch =
    need:
    let
      plain = map (
        version:
        need
        // {
          inherit version;
          compute = "cpu";
          tested = true; # of no part that nobody has fetched
        }
      ) ([ need.version ] ++ newestFirst);
      any = candidate: filter (python: pinned candidate python != null) table.pythons != [ ];
    in
    removeAttrs (findFirst any need plain) [ "tested" ];

  ofCell =
    cell:
    let
      stable = if cell.stable-abi != null then "-stable" else "";
      cuda = if cell.backend == "cuda" && cell.framework != "torch-noarch" then "-cuda" else "";
    in
    {
      recipe = "${cell.framework}${stable}${cuda}";
      version =
        if cell.framework == "ctypes" then
          ""
        else if cell.tvm-ffi != null then
          cell.tvm-ffi
        else
          cell.torch;
      inherit (cell) compute system;
    }
    // (if cell ? python then { only = cell.python; } else { });

  # The wheels of one part; none where it is not pinned.
  ofPart =
    need: name:
    let
      files = ofReference need name;
    in
    if files == null then [ ] else map (file: wheels.${file}) files;
in
{
  inherit (table) pythons;
  inherit wheels;

  /**
    The properties of a cell that select its environment, except the Python.

    # Type
    need :: Cell -> Need
  */
  need =
    cell:
    if cell.framework == "torch-noarch" then ofPlainTorch (ofCell cell) else ofCell cell;

  /**
    The wheels of some parts that an environment lacks, sorted by name; a part without pins has none.

    # Type
    additional :: Need -> String -> [ String ] -> [ Wheel ] -> [ Wheel ]
  */
  additional =
    need: python: parts: base:
    let
      have = map (wheel: wheel.name) base;
      found = concatMap (ofPart (need // { inherit python; })) parts;
    in
    filter (wheel: !(elem wheel.name have)) (attrValues (util.keyed "name" (reverse found)));

  /**
    The wheels of an environment, sorted by name; null where a part is not pinned.

    # Type
    environment :: Need -> String -> [ Wheel ] | null
  */
  environment =
    need: python:
    let
      files = pinned need python;
    in
    if files == null then null else sort (left: right: left.name < right.name) (map (file: wheels.${file}) files);
}
