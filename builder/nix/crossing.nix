/**
  Cells for another system than that of the package set, compiled by the pinned compilers, by the rules of
  `builder/plan/crossing.py`.
*/
{ util, pins, ... }:
let
  inherit (builtins) concatStringsSep elem filter;

  # Wheels with programs that run during a build; all other wheels are for the system that the cell is for.
  programs = [
    "cmake"
    "ninja"
    "nvidia-cuda-nvcc"
    "nvidia-nvvm"
  ];

  crosses = set: cell: cell.system != set.system && cell.framework != "torch-noarch";
in
{
  /**
    Whether a cell has code for another system than that of the package set.

    # Type
    crosses :: PackageSet -> Cell -> Bool
  */
  inherit crosses;

  /**
    The wheels of a cell; programs are of the system that it is compiled on. A wheel that pip would not install there is
    marked `foreign`.

    # Type
    runHere :: PackageSet -> Cell -> String -> [ Wheel ] -> [ Wheel ]
  */
  runHere =
    set: cell: tag: wheels:
    let
      need = pins.need cell // {
        inherit (set) system;
      };
      own = filter (wheel: elem wheel.name programs) (
        pins.additional need tag [
          "tools"
          "toolkit"
        ] [ ]
      );
      byName = util.keyed "name" own;
      taken =
        wheel: byName.${wheel.name} or (wheel // { foreign = !(util.hasSuffix "-any.whl" wheel.file); });
    in
    if crosses set cell then map taken wheels else wheels;

  /**
    The reason why a package set cannot compile a cell with the wheels of `runHere`; null when it can.

    # Type
    refused :: PackageSet -> Cell -> [ Wheel ] -> String | null
  */
  refused =
    set: cell: wheels:
    let
      named = map (wheel: wheel.name);
      foreign = named (filter (wheel: wheel.foreign or false) wheels);
      nvcc = "nvidia-cuda-nvcc";
      # The toolkit of a package set compiles for its own system alone.
      absent = if cell.backend == "cuda" && !(elem nvcc (named wheels)) then [ nvcc ] else [ ];
      lacking = filter (name: elem name programs) foreign ++ absent;
    in
    if !(crosses set cell) then
      null
    else if !(set.pinnedCompilers or false) then
      "only the pinned compilers compile for ${cell.system} on ${set.system}: --toolchain pinned"
    else if lacking != [ ] then
      "${concatStringsSep ", " lacking} is not pinned for ${set.system}"
    else
      null;
}
