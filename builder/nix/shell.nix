/**
  Shells for development: a cell's toolchain, its torch, and `builder`.
*/
{
  util,
  matrix,
  cells,
}:
let
  inherit (builtins)
    attrValues
    concatMap
    concatStringsSep
    filter
    listToAttrs
    map
    sort
    ;

  shell =
    set: { command }: cell:
    let
      environment = (cells.environment set null cell).drv;
      toolkits = set.toolkits or { };
      name = "${cell.backend}-${util.minor cell.toolkit}";
    in
    derivation (
      (if cell.toolkit == null then { } else toolkits.${name} or { })
      // {
        name = "shell-${cell.backend}";
        inherit (set) system;
        # nix develop reads the variables of a derivation that bash builds, and looks for its outputs among them.
        outputs = [ "out" ];
        builder = set.shell;
        args = [
          "-c"
          "echo > $out"
        ];
        PATH = concatStringsSep ":" (
          [
            "${environment}/bin"
            "${command}/bin"
          ]
          ++ set.path
        );
        VIRTUAL_ENV = environment;
        # Where the store can be written, Python would keep what it compiles in it.
        PYTHONDONTWRITEBYTECODE = "1";
        inherit (cell) variant;
        shellHook = "echo ${cell.variant}: python has ${
          if cell.framework == "ctypes" then
            "no framework"
          else if cell.tvm-ffi == null then
            "torch"
          else
            "tvm-ffi"
        }, and builder is here";
      }
    );

  # The first cell that can be built of each backend, of the newest torch.
  byBackend =
    set: known:
    let
      usable = filter (cell: cells.missing set cell == null) (
        sort (left: right: util.older right.torch left.torch) (attrValues known)
      );
    in
    listToAttrs (
      map (cell: {
        name = cell.backend;
        value = cell;
      }) (util.reverse usable)
    );

  named = set: tools: found: builtins.mapAttrs (_: shell set tools) found;

  withDefault =
    shells: shells // (if shells ? cpu then { default = shells.cpu; } else { });
in
{
  /**
    A shell for each backend of a kernel's cells.
  */
  ofCells = set: tools: known: withDefault (named set tools (byBackend set known));

  /**
    A shell for each backend of the matrix.
  */
  default =
    set: tools:
    let
      rows = filter (row: row.system == set.system && !row.noarch) (concatMap matrix.rows matrix.sets);
      plain =
        stable: row:
        {
          inherit (row)
            backend
            system
            torch
            toolkit
            compute
            variant
            ;
          framework = "torch";
          stable-abi = stable;
          tvm-ffi = null;
        };
      # The stable ABI needs no torch of the toolkit: a shell for CUDA without it is a tenth of the size.
      known = map (row: plain (if row.backend == "cuda" then row.torch else null) row) rows;
    in
    withDefault (
      named set tools (
        byBackend set (
          listToAttrs (
            map (cell: {
              name = cell.variant;
              value = cell;
            }) known
          )
        )
      )
    );
}
