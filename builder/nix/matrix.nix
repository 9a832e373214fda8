/**
  The build matrix: the cells of a kernel. The rules are those of `builder/matrix/`; both pass the same test cases.
*/
{ util, config, architectures, ... }:
let
  inherit (builtins)
    all
    any
    attrNames
    concatMap
    elem
    elemAt
    filter
    groupBy
    foldl'
    isString
    match
    readFile
    split
    ;
  inherit (util) digits minor older;

  table = fromTOML (readFile ../data/matrix.toml);
  backends = fromTOML (readFile ../data/backends.toml);

  /**
    The rows of a set, in the file's order.

    # Type
    rows :: String -> [ Row ]
  */
  rows =
    set:
    map (
      row:
      {
        bundle = true;
        noarch = false;
        tested = true;
        toolkit = null;
        inherit set;
        pythons = table.pythons.${row.torch} or [ ];
      }
      // row
    ) (table.${set}.cell or [ ]);

  /**
    The properties of a config that select the rows of a backend.
  */
  request =
    kernel: backend:
    let
      parts = config.partsOf kernel backend;
      noarch = config.framework kernel == "torch-noarch" || parts == [ ];
      stable = kernel.torch.stable-abi or { };
    in
    {
      inherit noarch parts;
      each-python = !noarch && (kernel.torch or { }) ? python-abi;
      stable =
        if noarch then
          null
        else if isString stable then
          stable
        else
          stable.${backend} or null;
    };

  within =
    bounds: version:
    !(bounds ? minver && older version bounds.minver) && !(bounds ? maxver && older bounds.maxver version);

  # Whether every clause of a range such as `>=12.8,<14.0` holds for a version.
  inRange =
    text: version:
    all (
      clause:
      let
        found = match " *(>=|<=|==|!=|>|<) *([0-9.]+) *" clause;
        bound = elemAt found 1;
        below = older version bound;
        above = older bound version;
      in
      {
        ">=" = !below;
        "<=" = !above;
        "==" = !below && !above;
        "!=" = below || above;
        ">" = above;
        "<" = below;
      }
      .${elemAt found 0}
    ) (filter isString (split "," text));

  # Whether a `when` holds in a row: that of a component, or of an extension with some components.
  holds =
    row: when: parts:
    let
      listed = value: if isString value then [ value ] else value;
    in
    (!(when ? cuda) || row.toolkit != null && inRange when.cuda (minor row.toolkit))
    && (!(when ? torch) || inRange when.torch row.torch)
    && (!(when ? system) || elem row.system (listed when.system))
    && (!(when ? arch) || architectures.anyCompiled parts row.toolkit (listed when.arch));

  # Whether conditions leave a library of a row without any component; `cuda-minver` alone never does so.
  isEmpty =
    extensions: row: parts:
    let
      tooOld = part: part ? cuda-minver && row.toolkit != null && older (minor row.toolkit) part.cuda-minver;
      isMet = part: holds row (part.when or { }) [ part ];
      isLeftOut = own: any (part: !(isMet part)) own && all (part: tooOld part || !(isMet part)) own;
      libraries = groupBy (part: part.extension or "") parts;
      # A library that the cell leaves out as a whole does not count.
      isPresent = name: holds row (extensions.${name}.when or { }) libraries.${name};
    in
    any (name: isPresent name && isLeftOut libraries.${name}) (attrNames libraries);

  /**
    Whether a row can give the kernel a cell.
  */
  matches =
    kernel: unbundled: row:
    let
      wanted = request kernel row.backend;
      matrix = kernel.matrix or { };
      own = matrix.${row.backend} or { };
      tvm-ffi = config.framework kernel == "tvm-ffi";
    in
    elem row.backend kernel.general.backends
    && (!row.noarch || wanted.noarch)
    && (!tvm-ffi || row ? tvm-ffi)
    && (row.backend != "cuda" || within (kernel.general.cuda or { }) (minor row.toolkit))
    && within (kernel.torch or { }) row.torch
    && (wanted.stable == null || !(older row.torch wanted.stable))
    && (!(matrix ? systems) || elem row.system matrix.systems)
    && (!(own ? systems) || elem row.system own.systems)
    && (!(own ? toolkits) || row.toolkit == null || elem (minor row.toolkit) (map minor own.toolkits))
    && (wanted.noarch || !(isEmpty (kernel.extension or { }) row wanted.parts))
    && (unbundled || row.bundle);

  /**
    Whether two rows give the same cell.
  */
  together =
    wanted: left: right:
    left.backend == right.backend
    && left.system == right.system
    && (wanted.noarch || left.toolkit == right.toolkit);

  cell =
    kernel: row:
    let
      wanted = request kernel row.backend;
      framework = if wanted.noarch then "torch-noarch" else config.framework kernel;
    in
    {
      inherit framework;
      inherit (row)
        backend
        system
        torch
        toolkit
        compute
        bundle
        set
        ;
      stable-abi = wanted.stable;
      tvm-ffi = if framework == "tvm-ffi" then row.tvm-ffi else null;
      variant =
        if wanted.noarch then
          backends.${row.backend}.noarch-variant
        else if framework == "tvm-ffi" then
          row.tvm-ffi-variant
        else if framework == "ctypes" then
          "ctypes-${row.compute}-${row.system}"
        else if wanted.stable != null then
          "torch-stable-abi${digits wanted.stable}-${row.compute}-${row.system}"
        else
          row.variant;
    };

  /**
    The cells of a row: one, or one for each Python that its torch has.
  */
  cellsOf =
    kernel: row:
    let
      one = cell kernel row;
    in
    if (request kernel row.backend).each-python then
      map (python: one // { inherit python; variant = "${one.variant}-${python}"; }) row.pythons
    else
      [ one ];
in
{
  inherit rows;

  /**
    Whether a `when` holds in a cell for any choice of GPUs.

    # Type
    mayHold :: Cell -> When -> Bool
  */
  mayHold = cell: when: holds cell (removeAttrs when [ "arch" ]) [ ];

  /**
    The names of the sets; the released set is the first.
  */
  sets = [
    "release"
    "preview"
    "legacy"
  ];

  /**
    The cells that a kernel gets from these rows, in their order.

    # Type
    select :: { unbundled ? Bool } -> Config -> [ Row ] -> [ Cell ]
  */
  select =
    {
      unbundled ? false,
    }:
    kernel: among:
    let
      candidates = filter (matches kernel unbundled) among;
      # Of rows that give the same cell, the first tested one with the newest torch stays.
      outranks =
        row: other: if row.tested == other.tested then older row.torch other.torch else other.tested;
      beaten =
        row:
        let
          wanted = request kernel row.backend;
        in
        (wanted.noarch || wanted.stable != null)
        && any (other: together wanted row other && outranks row other) candidates;
      add =
        found: new:
        if any (old: old.variant == new.variant && old.system == new.system) found then found else found ++ [ new ];
    in
    foldl' add [ ] (concatMap (row: if beaten row then [ ] else cellsOf kernel row) candidates);
}
