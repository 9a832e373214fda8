/**
  A cell as one derivation, which renders, builds, audits and load-tests it by the code of the local engine.
*/
{
  util,
  buildable,
  compilers,
  crossing,
  matrix,
  pins,
  headers,
  libraries,
  foreign,
  sources,
  loadTestPackages,
  lockedKernels,
  tool,
  environment,
  objects,
  ...
}:
let
  inherit (builtins)
    concatStringsSep
    elem
    filter
    head
    sort
    toJSON
    ;

  # The options that objects depend on.
  ofObjects = [
    "allow-unsafe-flags"
    "archs"
    "epoch"
    "policy"
    "variables"
    "without"
  ];

  # A name with the characters that Nix's store accepts.
  storeName =
    name: concatStringsSep "-" (filter builtins.isString (builtins.split "[^a-zA-Z0-9+._?=-]+" name));

  # The options that differ from the defaults of `BuildOptions` in builder/wheel/options.py, so that equal requests give
  # equal derivations.
  optional = util.filterAttrs (_: value: value != null);

  toolWheels =
    set: tag: recipe:
    pins.environment {
      inherit recipe;
      inherit (set) system;
      version = "";
      compute = "";
    } tag;

  tools =
    set: tag: recipe:
    environment.make set tag {
      name = recipe;
      wheels = toolWheels set tag recipe;
    };

  # What a cell needs, the Python that builds it, and the wheels that are pinned for both.
  baseOf =
    set: cell:
    let
      need = pins.need cell;
      tag = head (environment.pythons set pins need);
    in
    {
      inherit need tag;
      base = pins.environment need tag;
    };

  /**
    The environment of a cell, with the headers that a kernel needs.

    # Type
    environmentOf :: PackageSet -> Config | null -> Cell -> { drv :: Derivation, tag :: String, wheels :: [ Wheel ] }
  */
  environmentOf =
    set: kernel: cell:
    let
      inherit (baseOf set cell) need tag base;
      headerWheels = if kernel == null then [ ] else headers.wheelsOf kernel cell.backend;
      linked = if kernel == null then [ ] else libraries.partsOf kernel cell;
      wheels = crossing.runHere set cell tag (
        sort (left: right: left.name < right.name) (
          base ++ headerWheels ++ pins.additional need tag linked base
        )
      );
    in
    {
      inherit tag wheels;
      drv = environment.make set tag {
        # Without the name of the cell: cells with the same pins share the environment.
        name = "environment";
        inherit wheels;
      };
    };

  # Whether a kernel is load-tested, by the rule of `load_test` in builder/make/job.py.
  isTested =
    kernel: options:
    util.findFirst (rule: rule != null) "require" [
      (options.load-test or null)
      (kernel.build.load-test or null)
    ] != "skip";

  /**
    The environment that a cell has for its load test alone; null where that would be empty.

    # Type
    testEnvironmentOf :: PackageSet -> { root, kernel, options } -> Cell -> { drv :: Derivation, wheels :: [ Wheel ] } | null
  */
  testEnvironmentOf =
    set:
    {
      root,
      kernel,
      options ? { },
    }:
    cell:
    let
      inherit (baseOf set cell) need tag base;
      parts = loadTestPackages.parts root kernel cell;
      loaded = isTested kernel options && !(crossing.crosses set cell);
      wheels = if loaded then pins.additional need tag parts base else [ ];
    in
    if wheels == [ ] then
      null
    else
      {
        inherit wheels;
        drv = environment.make set tag {
          name = "load-test";
          inherit wheels;
        };
      };
in
{
  inherit (buildable) missing skipped;

  environment = environmentOf;
  testEnvironment = testEnvironmentOf;

  inherit toolWheels;

  /**
    A package set with the derivations that its cells share; the functions below take one of these.

    # Type
    prepare :: PackageSet -> PreparedSet
  */
  prepare =
    set:
    let
      prepared = environment.prepare (pins.wheels // headers.wheels) set;
    in
    prepared
    // {
      tools = builtins.mapAttrs (tag: _: tools prepared tag "builder") set.pythons;
    };

  /**
    The environment that `builder` runs in, for a Python of the package set.

    # Type
    tools :: PreparedSet -> String -> String -> Derivation
  */
  inherit tools;

  /**
    The derivation of a cell; no other cell is evaluated. With `perFile` each source is compiled by a derivation of its
    own; these are `objects`. `locked = false` leaves out the kernels of `kernels.lock`.

    # Type
    build :: PackageSet -> { root :: Path, kernel :: Config, options ? AttrSet, perFile ? Bool, locked ? Bool } -> Cell -> Derivation
  */
  build =
    packageSet:
    {
      root,
      kernel,
      options ? { },
      perFile ? false,
      locked ? true,
    }:
    cell:
    let
      # The compilers that the kernel asks for, unless the package set decides.
      set = {
        pinnedCompilers = (kernel.build.toolchain or "system") == "pinned";
      } // packageSet;
      kernels =
        if locked && isTested kernel options && !(crossing.crosses set cell) then
          lockedKernels.of set root kernel cell
        else
          null;
      found = environmentOf set kernel cell;
      tested = testEnvironmentOf set { inherit root kernel options; } cell;
      # The JSON of `PinnedPackages` in builder/make/job.py.
      packages = made: {
        path = made.drv;
        pins = {
          python = found.tag;
          inherit (cell) system;
          wheels = map (wheel: { inherit (wheel) file name sha256 version; }) made.wheels;
        };
      };
      lacking = buildable.missing set cell;
      chosen = compilers.of set cell;
      variables = buildable.variables set cell // chosen.variables;
      run =
        attributes:
        derivation (
          variables
          // environment.running set "${set.tools.${found.tag}}/bin/python" ./start.py
          // {
            PATH = concatStringsSep ":" (chosen.path ++ set.path);
            PYTHONHASHSEED = "0";
            PYTHONDONTWRITEBYTECODE = "1";
            checkout = if tool.checkout then "1" else "";
          }
          // attributes
        );
      spec = {
        inherit cell;
        environment = packages found;
        test-environment = null;
        kernels = null;
        options = util.filterAttrs (name: _: elem name ofObjects) (optional options);
        headers = headers.foldersOf kernel cell.backend;
        sources = if cell.framework == "torch-noarch" then { } else foreign.of kernel cell.backend;
      };
      whole = {
        name = "${kernel.general.name}-${cell.variant}";
        spec = toJSON (
          spec
          // {
            kernel = sources.source root kernel;
            inherit kernels;
            test-environment = if tested == null then null else packages tested;
            options = optional options;
          }
        );
      };
      atOnce = run (whole // { inherit (tool) core; });
      cached = {
        core = tool.caching;
        module = "builder.compile_cache.derivation";
        ccache = "${tools set found.tag "compiled-files"}/bin/ccache";
      };
      compiled =
        file:
        run (
          cached
          // {
            name = "${whole.name}-${storeName (baseNameOf file.source)}";
            inherit (file) source;
            kernel = toJSON file.kernel;
            passAsFile = [ "kernel" ];
            spec = toJSON (spec // { kernel = ""; });
          }
        );
      drv = if perFile then fromFiles else atOnce;
      files = map compiled (objects.of root kernel cell);
      fromFiles = run (
        cached
        // whole
        // {
          objects = toJSON files;
          passAsFile = [ "objects" ];
        }
      );
    in
    if lacking != null then
      throw "${kernel.general.name} ${cell.variant}: ${lacking}"
    else
      drv
      // {
        # The same wheel from files that are compiled one by one, and the derivations of these files.
        perFile = fromFiles;
        objects = files;
        inherit kernels;
        meta = {
          description = "The ${kernel.general.name} kernel, built as ${cell.variant}";
          platforms = [ cell.system ];
        };
        passthru = {
          inherit (cell) variant backend torch;
          inherit cell;
          environment = found.drv;
          record = "${drv}/record.json";
        };
        inherit (cell) variant backend torch;
        record = "${drv}/record.json";
      };

  /**
    The cells of a kernel on a system, by variant. Each set is a matrix of its own; where two have a cell of the same
    name, the cell of the first set counts.

    # Type
    select :: Config -> { system :: String, sets ? [ String ], unbundled ? Bool, rows ? (Row -> Bool) } -> { String = Cell; }
  */
  select =
    kernel:
    {
      system,
      sets ? [ "release" ],
      unbundled ? false,
      rows ? (_: true),
    }:
    let
      among = set: filter (row: row.system == system && rows row) (matrix.rows set);
      ofSet =
        set: util.keyed "variant" (matrix.select { inherit unbundled; } kernel (among set));
    in
    builtins.foldl' (found: set: ofSet set // found) { } sets;
}
