/**
  The pure library: it uses builtins alone, and evaluates without nixpkgs and without a network.

  Each file is a function of the parts that it uses, and this file passes them. Facts come from `builder/data`, which
  Python reads too. A derivation takes its tools from a package set (see `docs/nix.md`), an argument of each function
  that makes one.
*/
let
  util = import ./util.nix;
  glob = import ./glob.nix { inherit util; };
  config = import ./config.nix { };
  architectures = import ./architectures.nix { inherit util; };
  matrix = import ./matrix.nix { inherit util config architectures; };
  pins = import ./pins.nix { inherit util; };
  headers = import ./headers.nix { inherit util; };
  libraries = import ./libraries.nix { inherit util config matrix; };
  foreign = import ./foreign.nix { inherit util config; };
  sources = import ./sources.nix { inherit util config glob; };
  loadTestPackages = import ./load-test-packages.nix { inherit util sources; };
  objects = import ./objects.nix { inherit util sources; };
  tool = import ./tool.nix { inherit util; };
  environment = import ./environment.nix { inherit util; };
  lockedKernels = import ./locked-kernels.nix { inherit util environment; };
  compilers = import ./compilers.nix { };
  crossing = import ./crossing.nix { inherit util pins; };
  buildable = import ./buildable.nix {
    inherit
      util
      crossing
      pins
      environment
      ;
  };
  cells = import ./cells.nix {
    inherit
      util
      buildable
      compilers
      crossing
      matrix
      pins
      headers
      libraries
      foreign
      sources
      loadTestPackages
      lockedKernels
      tool
      environment
      objects
      ;
  };
  programs = import ./programs.nix {
    inherit
      util
      pins
      tool
      cells
      ;
  };
  workflow = import ./workflow.nix { inherit util programs; };
  shell = import ./shell.nix { inherit util matrix cells; };
  nixpkgs = import ./nixpkgs.nix { };
  outputs = import ./outputs.nix {
    inherit
      util
      config
      matrix
      pins
      sources
      cells
      programs
      shell
      nixpkgs
      workflow
      ;
  };
in
{
  inherit
    util
    config
    architectures
    matrix
    pins
    headers
    libraries
    foreign
    sources
    loadTestPackages
    lockedKernels
    compilers
    crossing
    objects
    tool
    environment
    cells
    shell
    nixpkgs
    outputs
    ;
  /**
    The package set of this machine's own tools.
  */
  host = import ./host;
}
