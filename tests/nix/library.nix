/**
  The functions of the pure library that tests call; `asked` is JSON.
*/
{ asked }:
let
  inherit (builtins)
    concatMap
    fromJSON
    listToAttrs
    map
    ;

  library = import ../../builder/nix;
  inherit (library)
    loadTestPackages
    config
    crossing
    headers
    matrix
    pins
    sources
    ;
  given = fromJSON asked;
  plain = library.host { system = given.system or "x86_64-linux"; };
  host = library.cells.prepare plain;
  outputs = library.outputs.flake {
    examples = ../../examples;
    selected = import ./select.nix;
  } {
    self = { };
    nixpkgs.builderPackageSet.x86_64-linux = plain;
  };
in
{
  compiled = map (case: library.architectures.compiled case.part case.toolkit) given.cases;

  selected = map (
    case:
    map (cell: [
      cell.variant
      cell.system
      cell.torch
    ]) (
      matrix.select { unbundled = case.all; } (config.upgrade "build.toml" case.config) (
        concatMap matrix.rows case.sets
      )
    )
  ) given.cases;

  pinned = map (
    need:
    let
      found = pins.environment need need.python;
    in
    if found == null then null else map (wheel: [ wheel.file wheel.sha256 wheel.index ]) found
  ) given.needs;

  needs = map (cell: pins.need cell) given.cells;

  crossed = map (
    cell:
    let
      found = pins.environment (pins.need cell) given.python;
      set = {
        system = given.system or "x86_64-linux";
        pinnedCompilers = given.compilers or true;
      };
      wheels = crossing.runHere set cell given.python found;
    in
    if found == null || crossing.refused set cell wheels != null then null else map (wheel: wheel.file) wheels
  ) given.cells;

  sources =
    let
      root = /. + given.kernel;
      kernel = config.load root;
    in
    {
      files = sources.files root kernel;
      store = baseNameOf (sources.source root kernel);
    };

  headers =
    let
      kernel = config.load (/. + given.kernel);
    in
    {
      cpu = headers.wheelsOf kernel "cpu";
      cuda = headers.wheelsOf kernel "cuda";
      all = builtins.attrNames headers.wheels;
    };

  loadTestPackages =
    let
      root = /. + given.kernel;
      kernel = config.load root;
      of =
        cell:
        let
          need = pins.need cell;
          base = pins.environment need given.python;
          parts = loadTestPackages.parts root kernel cell;
        in
        {
          inherit parts;
          wheels =
            if base == null then
              null
            else
              map (wheel: wheel.file) (pins.additional need given.python parts base);
        };
    in
    map of given.cells;

  lockedKernels =
    let
      root = /. + given.kernel;
      known = library.lockedKernels.of host root (config.load root) { backend = "cpu"; };
    in
    if known == null then
      null
    else
      map (each: {
        inherit (each.tree) name;
        path = builtins.unsafeDiscardStringContext each.tree.outPath;
      }) known;

  linked =
    let
      kernel = config.load (/. + given.kernel);
    in
    map (
      cell:
      let
        found = library.cells.environment host kernel cell;
      in
      {
        inherit (found) tag;
        files = map (wheel: wheel.file) found.wheels;
      }
    ) given.cells;

  loaded = config.load (/. + given.kernel);

  derivations =
    let
      root = /. + given.kernel;
      kernel = config.load root;
      known = library.cells.select kernel { inherit (host) system; };
    in
    listToAttrs (
      map (name: {
        inherit name;
        value = builtins.unsafeDiscardStringContext (library.cells.build host { inherit root kernel; } known.${name}).drvPath;
      }) given.variants
    );

  # The derivations of a cell that is compiled file by file.
  objects =
    let
      root = /. + given.kernel;
      kernel = config.load root;
      cell = (library.cells.select kernel { inherit (host) system; }).${given.variant};
      built = library.cells.build host { inherit root kernel; } cell;
      path = drv: builtins.unsafeDiscardStringContext drv.drvPath;
    in
    {
      cell = path built.perFile;
      files = listToAttrs (
        map (drv: {
          name = drv.source;
          value = path drv;
        }) built.objects
      );
      flake =
        let
          inherit (library.outputs.kernelFlake { builderPackageSet.x86_64-linux = plain; } {
            self = { };
            path = root;
            perFile = true;
          }) legacyPackages;
        in
        path legacyPackages.x86_64-linux.cells.x86_64-linux.${given.variant};
      given = map (file: file.kernel) (library.objects.of root kernel cell);
      inherit (library.objects) ofPython withoutPython;
    };

  specs =
    let
      root = /. + given.kernel;
      kernel = config.load root;
      known = library.cells.select kernel { inherit (host) system; };
      asked = {
        inherit root kernel;
        inherit (given) options;
      };
    in
    map (
      name: builtins.unsafeDiscardStringContext (library.cells.build host asked known.${name}).spec
    ) given.variants;

  skipped = outputs.legacyPackages.x86_64-linux.skipped.x86_64-linux;
  everything = builtins.mapAttrs (
    _: kernel: builtins.mapAttrs (_: drv: (builtins.tryEval drv.drvPath).success) kernel
  ) outputs.legacyPackages.x86_64-linux.cells.x86_64-linux;
}
