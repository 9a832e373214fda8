/**
  Which GPU architectures a component is compiled for. The rules are those of `builder/matrix/architectures.py`, which a
  condition of `when` asks for; builds themselves leave it to CMake.
*/
{ util }:
let
  inherit (builtins)
    any
    concatMap
    elem
    elemAt
    filter
    foldl'
    fromTOML
    head
    isNull
    map
    match
    readFile
    ;
  inherit (util) findFirst minor older;

  facts = fromTOML (readFile ../data/architectures.toml);

  parts = match "([0-9]+)\\.([0-9]+)([af]?)(\\+PTX)?";
  withoutPtx = name: head (match "([^+]*)(\\+PTX)?" name);
  plain =
    name:
    let
      found = parts name;
    in
    "${elemAt found 0}.${elemAt found 1}";
  major = name: elemAt (parts name) 0;
  isSpecial = name: elemAt (parts name) 2 != "";
  hasPtx = name: elemAt (parts name) 3 != null;

  # The newest of some capabilities whose code runs on a GPU.
  best =
    gpu: requested: ptx:
    let
      runs = name: !(older gpu name) && (major name == major gpu || elem name ptx);
      newest = found: name: if isNull found || older found name then name else found;
    in
    foldl' newest null (filter runs requested);

  renamed =
    generation: name:
    let
      own = plain name;
      suffix = elemAt (parts name) 2 + (if hasPtx name then "+PTX" else "");
    in
    "${(generation.renamed or { }).${own} or own}${suffix}";

  # What a generation of toolkits compiles of a request, so that every supported GPU that the code would run on has code.
  intersect =
    generation: requested:
    let
      names = map (renamed generation) requested;
      ptx = map withoutPtx (filter hasPtx names);
      asked = map withoutPtx names;
      known = filter (name: elem name generation.targets) asked;
      gpus = map withoutPtx generation.capabilities ++ map plain known;
      special = filter isSpecial known;
      served = map plain special;
      others = filter (gpu: !(elem gpu served)) gpus;
      found = map (gpu: best gpu (filter (name: !(isSpecial name)) asked) ptx) others;
    in
    special ++ filter (name: name != null) found;

  cuda =
    requested: toolkit:
    let
      generation = findFirst (each: !(older toolkit each.since)) null facts.cuda.toolkit;
    in
    if generation == null then
      [ ]
    else if requested == null then
      map withoutPtx generation.capabilities
    else
      intersect generation requested;

  rocm =
    requested:
    if requested == null then
      facts.rocm.archs
    else
      filter (name: elem name facts.rocm.targets) requested;

  compiledFor =
    part: toolkit:
    if part.backend == "cuda" && toolkit != null then
      cuda (part.cuda-capabilities or null) (minor toolkit)
    else if part.backend == "rocm" then
      rocm (part.rocm-archs or null)
    else
      [ ];
in
{
  /**
    The architectures that a component is compiled for with a toolkit, without `+PTX`, in no order.

    # Type
    compiled :: Component -> String | null -> [ String ]
  */
  compiled = compiledFor;

  /**
    Whether one of some components is compiled for one of some architectures, which have no `+PTX`.

    # Type
    anyCompiled :: [ Component ] -> String | null -> [ String ] -> Bool
  */
  anyCompiled =
    components: toolkit: names:
    any (name: elem name names) (concatMap (part: compiledFor part toolkit) components);
}
