/**
  Functions that several files of the library use, and builtins lack.
*/
_:
let
  inherit (builtins)
    attrNames
    compareVersions
    concatStringsSep
    elemAt
    filter
    foldl'
    genList
    head
    length
    listToAttrs
    match
    split
    stringLength
    substring
    ;
in
{
  /**
    Whether a text begins with another.

    # Type
    hasPrefix :: String -> String -> Bool
  */
  hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;

  /**
    Whether a text ends with another.

    # Type
    hasSuffix :: String -> String -> Bool
  */
  hasSuffix =
    suffix: text:
    let
      rest = stringLength text - stringLength suffix;
    in
    rest >= 0 && substring rest (stringLength suffix) text == suffix;

  /**
    The characters of a text of ASCII.

    # Type
    characters :: String -> [ String ]
  */
  characters = text: genList (index: substring index 1 text) (stringLength text);

  /**
    The parts of a path, without empty ones and dots.

    # Type
    segments :: String -> [ String ]
  */
  segments = path: filter (part: part != [ ] && part != "" && part != ".") (split "/" path);

  /**
    An attribute set of these names, each with the value that a function makes of it.

    # Type
    genAttrs :: [ String ] -> (String -> a) -> { String = a; }
  */
  genAttrs =
    names: make:
    listToAttrs (
      map (name: {
        inherit name;
        value = make name;
      }) names
    );

  /**
    An attribute set of these sets, each by the value of one of its attributes.

    # Type
    keyed :: String -> [ AttrSet ] -> { String = AttrSet; }
  */
  keyed =
    key: sets:
    listToAttrs (
      map (value: {
        name = value.${key};
        inherit value;
      }) sets
    );

  /**
    The attributes that a predicate accepts.

    # Type
    filterAttrs :: (String -> a -> Bool) -> { String = a; } -> { String = a; }
  */
  filterAttrs =
    accept: set:
    listToAttrs (
      map (name: {
        inherit name;
        value = set.${name};
      }) (filter (name: accept name set.${name}) (attrNames set))
    );

  /**
    The first element that a predicate accepts, or a default.

    # Type
    findFirst :: (a -> Bool) -> a -> [ a ] -> a
  */
  findFirst =
    accept: default: list:
    let
      found = filter accept list;
    in
    if found == [ ] then default else head found;

  /**
    The first of each group of equal elements, in order.

    # Type
    unique :: [ String ] -> [ String ]
  */
  unique =
    list:
    (foldl'
      (
        state: item:
        if state.seen ? ${item} then
          state
        else
          {
            seen = state.seen // {
              ${item} = true;
            };
            found = state.found ++ [ item ];
          }
      )
      {
        seen = { };
        found = [ ];
      }
      list
    ).found;

  /**
    `MAJOR.MINOR` of a version.

    # Type
    minor :: String -> String
  */
  minor =
    version:
    let
      parts = match "([0-9]+)\\.([0-9]+).*" version;
    in
    if parts == null then version else concatStringsSep "." parts;

  /**
    The digits of `MAJOR.MINOR`, as in variant names: `2.10` is `210`.

    # Type
    digits :: String -> String
  */
  digits =
    version:
    let
      parts = match "([0-9]+)\\.([0-9]+).*" version;
    in
    "${elemAt parts 0}${elemAt parts 1}";

  /**
    Whether a version is older than another, by number: 2.9 is older than 2.10.

    # Type
    older :: String -> String -> Bool
  */
  older = left: right: compareVersions left right < 0;

  /**
    The last element of a list.

    # Type
    last :: [ a ] -> a
  */
  last = list: elemAt list (length list - 1);

  /**
    A list in reverse order.

    # Type
    reverse :: [ a ] -> [ a ]
  */
  reverse = list: genList (index: elemAt list (length list - 1 - index)) (length list);

  /**
    The attributes of a derivation whose output has a known sha256, as one file (`flat`) or with all below it
    (`recursive`).

    # Type
    fixed :: String -> String -> AttrSet
  */
  fixed = mode: hash: {
    outputHashMode = mode;
    outputHashAlgo = "sha256";
    outputHash = hash;
    preferLocalBuild = true;
  };
}
