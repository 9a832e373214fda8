/**
  The cells that a package set can build, and the reason why it cannot build the others. `builder/plan/buildable.py`
  does the same for a machine.
*/
{
  util,
  crossing,
  pins,
  environment,
  matrix,
  ...
}:
let
  inherit (builtins) concatStringsSep filter head;

  dotted = tag: "3.${builtins.substring 3 (builtins.stringLength tag) tag}";

  # A cell in words.
  described =
    cell:
    let
      version =
        if cell.framework == "ctypes" then
          "ctypes"
        else if cell.tvm-ffi != null then
          "tvm-ffi ${cell.tvm-ffi}"
        else
          "torch ${cell.torch}";
      python = if cell ? python then ", for Python ${dotted cell.python}" else "";
    in
    "${version} ${cell.compute} on ${cell.system}${python}";

  # The toolkit of a package set that a cell compiles with: the attribute `cuda-12.6` of `toolkits`.
  toolkitOf = set: cell: (set.toolkits or { }).${"${cell.backend}-${util.minor cell.toolkit}"} or null;

  # Whether the cell needs no compiler of a toolkit, or the pinned wheels have it.
  pinnedToolkit =
    cell: wheels:
    cell.framework == "torch-noarch"
    || cell.toolkit == null
    || builtins.any (wheel: wheel.name == "nvidia-cuda-nvcc") wheels;

  missing =
    set: cell:
    let
      need = pins.need cell;
      wheels = crossing.runHere set cell (head tags) (pins.environment need (head tags));
      refused = crossing.refused set cell wheels;
      known = filter (
        tag: (need.only or tag) == tag && pins.environment need tag != null
      ) pins.pythons;
      tags = environment.pythons set pins need;
    in
    if known == [ ] then
      "no wheels are pinned for ${described cell}, with any Python: add them with 'builder pins update'"
    else if tags == [ ] then
      "no wheels are pinned for ${described cell} with a Python of the package set '${set.name}': ${concatStringsSep ", " (map dotted known)} have pins"
    else if refused != null then
      refused
    else if
      !(pinnedToolkit cell wheels) && toolkitOf set cell == null
    then
      "the package set '${set.name}' has no ${cell.backend} ${util.minor cell.toolkit}"
    else
      null;

  # Whether each key of a rule of a package set matches a cell.
  concerns =
    cell: rule:
    (!(rule ? backend) || rule.backend == cell.backend)
    && (!(rule ? framework) || rule.framework == cell.framework)
    && (!(rule ? stable-abi) || rule.stable-abi == (cell.stable-abi != null))
    && (!(rule ? toolkit) || cell.toolkit != null && rule.toolkit == util.minor cell.toolkit);

  # Whether nobody has built with the pinned wheels of a cell's row.
  untested =
    cell:
    builtins.any (
      row: !row.tested && row.torch == cell.torch && row.compute == cell.compute && row.system == cell.system
    ) (matrix.rows cell.set);
in
{
  /**
    The variables of the toolkit of a package set that a cell compiles with; none where pinned wheels have it.

    # Type
    variables :: PackageSet -> Cell -> { String = String; }
  */
  variables =
    set: cell:
    let
      found = if cell.toolkit == null then null else toolkitOf set cell;
    in
    if found == null then { } else found;

  /**
    The reason why a package set cannot build a cell; null when it can.

    # Type
    missing :: PackageSet -> Cell -> String | null
  */
  inherit missing;

  /**
    The reason why a package set does not release a cell; null when it does.

    # Type
    skipped :: PackageSet -> Cell -> String | null
  */
  skipped =
    set: cell:
    let
      lacking = missing set cell;
      rules = filter (concerns cell) (set.skip or [ ]);
    in
    if lacking != null then
      lacking
    else if rules != [ ] then
      (head rules).reason
    else if untested cell then
      # One wrong hash would fail all wheels of a release.
      "nobody has built with the pinned wheels of torch ${cell.torch} ${cell.compute}: build the cell by its name"
    else
      null;
}
