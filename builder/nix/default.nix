/**
  The pure library: it uses builtins alone, and evaluates without nixpkgs and without a network.

  Each file is a function of the parts that it uses. Facts come from `builder/data`, which Python reads too. A derivation
  takes its tools from a package set (see `docs/nix.md`), an argument of each function that makes one.
*/
let
  library = builtins.mapAttrs (_: file: import file library) {
    util = ./util.nix;
    glob = ./glob.nix;
    config = ./config.nix;
    architectures = ./architectures.nix;
    matrix = ./matrix.nix;
    pins = ./pins.nix;
    headers = ./headers.nix;
    libraries = ./libraries.nix;
    foreign = ./foreign.nix;
    sources = ./sources.nix;
    loadTestPackages = ./load-test-packages.nix;
    objects = ./objects.nix;
    tool = ./tool.nix;
    environment = ./environment.nix;
    lockedKernels = ./locked-kernels.nix;
    compilers = ./compilers.nix;
    crossing = ./crossing.nix;
    buildable = ./buildable.nix;
    cells = ./cells.nix;
    programs = ./programs.nix;
    workflow = ./workflow.nix;
    shell = ./shell.nix;
    nixpkgs = ./nixpkgs.nix;
    outputs = ./outputs.nix;
  };
in
library
// {
  /**
    The package set of this machine's own tools.
  */
  host = import ./host;
}
