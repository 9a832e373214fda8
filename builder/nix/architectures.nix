/**
  The GPU architectures that a component is compiled for, by the rules of `builder/matrix/architectures.py`. Only
  conditions of `when` need them here; in a build, CMake applies the same rules.
*/
{ util, ... }:
let
  inherit (builtins)
    any
    concatMap
    elem
    elemAt
    filter
    foldl'
    head
    match
    readFile
    ;
  inherit (util) findFirst minor older;

  facts = fromTOML (readFile ../data/architectures.toml);

  parts = match "([0-9]+)\\.([0-9]+)([af]?)(\\+PTX)?";
  halves = match "([^:]*):(.*)";
  withoutPtx = name: head (match "([^+]*)(\\+PTX)?" name);
  plain =
    name:
    let
      found = parts name;
    in
    "${elemAt found 0}.${elemAt found 1}";
  major = name: elemAt (parts name) 0;
  suffix = name: elemAt (parts name) 2;
  isSpecial = name: suffix name != "";
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
      mark = if hasPtx name then "+PTX" else "";
    in
    "${(generation.renamed or { }).${own} or own}${suffix name}${mark}";

  # A pair is compiled for its first half, as code for its second; a single capability is both.
  codeOf =
    generation: name:
    let
      pair = halves name;
      virtual = renamed generation (if pair == null then name else head pair);
      real = renamed generation (elemAt pair 1);
      family = if suffix virtual == "f" && !(isSpecial real) then "f" else "";
    in
    if pair == null then
      {
        virtual = withoutPtx virtual;
        real = withoutPtx virtual;
        ptx = hasPtx virtual;
      }
    else
      {
        inherit virtual;
        real = real + family;
        ptx = false;
      };

  # The family of a GPU, by its number in the newest toolkits: 10.1 is 11.0 there.
  family = name: major ((head facts.cuda.toolkit).renamed.${plain name} or name);

  # Whether toolkits of a generation can compile the code of a pair.
  makes =
    generation: code:
    let
      known = name: elem name generation.targets;
      ofFamily = suffix code.virtual == "f" || suffix code.real == "f";
      possible =
        suffix code.virtual != "a"
        && !(older (plain code.real) (plain code.virtual))
        && (!ofFamily || (family code.virtual == family code.real && major code.virtual == major code.real));
    in
    known code.virtual && known code.real && (code.virtual == code.real || possible);

  # The machine code that a generation of toolkits compiles for a request: enough for every supported GPU that the
  # requested code would run on.
  intersect =
    generation: requested:
    let
      asked = map (codeOf generation) requested;
      ptx = map (code: code.virtual) (filter (code: code.ptx) asked);
      known = filter (makes generation) asked;
      isOwn = code: isSpecial code.real || code.virtual != code.real;
      special = filter isOwn known;
      families = map (code: plain code.real) (filter (code: suffix code.real == "f") special);
      isPlain = code: !(isOwn code) && !(elem code.real families);
      plainOnes = map (code: code.real) (filter isPlain known);
      gpus = map withoutPtx generation.capabilities ++ map (code: plain code.real) known;
      served = map (code: plain code.real) special;
      others = filter (gpu: !(elem gpu served)) gpus;
      found = map (gpu: best gpu plainOnes ptx) others;
    in
    map (code: code.real) special ++ filter (name: name != null) found;

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
    The architectures for which a component has machine code, compiled with a toolkit, in no order.

    # Type
    compiled :: Component -> String | null -> [ String ]
  */
  compiled = compiledFor;

  /**
    Whether any of the components is compiled for any of the architectures, which are named without `+PTX`.

    # Type
    anyCompiled :: [ Component ] -> String | null -> [ String ] -> Bool
  */
  anyCompiled =
    components: toolkit: names:
    any (name: elem name names) (concatMap (part: compiledFor part toolkit) components);
}
