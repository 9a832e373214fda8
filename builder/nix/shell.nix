/**
  Shells for development, with the toolchain of a cell, its torch, and `builder`.
*/
{ util, buildable, matrix, cells, ... }:
let
  inherit (builtins)
    attrValues
    concatMap
    concatStringsSep
    filter
    sort
    ;

  shell =
    set: { command }: cell:
    let
      environment = (cells.environment set null cell).drv;
    in
    derivation (
      buildable.variables set cell
      // {
        name = "shell-${cell.backend}";
        inherit (set) system;
        # nix develop takes the variables of a derivation whose builder is bash, and looks for `outputs` among them.
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
        # Python would write bytecode into a store that is writable.
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

  # For each backend the first cell that can be built, with the newest torch.
  byBackend =
    set: known:
    let
      usable = filter (cell: cells.missing set cell == null) (
        sort (left: right: util.older right.torch left.torch) (attrValues known)
      );
    in
    util.keyed "backend" (util.reverse usable);

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
      # A cell of the stable ABI needs no torch for its toolkit, which makes a shell for CUDA ten times smaller.
      known = map (row: plain (if row.backend == "cuda" then row.torch else null) row) rows;
    in
    withDefault (named set tools (byBackend set (util.keyed "variant" known)));
}
