/**
  The outputs of a flake: of builder's own, and of a kernel's.
*/
_:
let
  inherit (builtins)
    attrNames
    concatMap
    filter
    isFunction
    listToAttrs
    map
    mapAttrs
    readDir
    ;

  util = import ./util.nix;
  configs = import ./config.nix { };
  cells = import ./cells.nix { inherit util; };
  matrix = import ./matrix.nix { inherit util; };
  inherit (import ./programs.nix { inherit util; })
    app
    command
    folder
    formatter
    script
    ;
  shells = import ./shell.nix { inherit util; };
  map' = import ./nixpkgs.nix { };

  systems = [
    "x86_64-linux"
    "aarch64-linux"
    "aarch64-darwin"
  ];

  /**
    The package set of a system that the input `nixpkgs` stands for; null where it has none.
  */
  packageSet =
    nixpkgs: system:
    if nixpkgs ? builderPackageSet then
      nixpkgs.builderPackageSet.${system} or null
    else if nixpkgs.legacyPackages ? ${system} then
      map' { pkgs = nixpkgs.legacyPackages.${system}; }
    else
      null;

  /**
    What a kernel gives on a system.

    # Type
    ofKernel :: { root, set, options ?, sets ?, rows ? } -> { cells, released, skipped }
  */
  ofKernel =
    {
      root,
      set,
      system,
      options ? { },
      rows ? (_: true),
    }:
    let
      kernel = configs.load root;
      some =
        selection:
        cells.select kernel (
          {
            inherit system rows;
          }
          // selection
        );
      every = some {
        inherit (matrix) sets;
        unbundled = true;
      };
      release = some { };
      build = cells.build set { inherit root kernel options; };
      reason = cells.skipped set;
    in
    {
      cells = mapAttrs (_: build) every;
      released = map build (builtins.attrValues (util.filterAttrs (_: cell: reason cell == null) release));
      skipped = util.filterAttrs (_: why: why != null) (mapAttrs (_: reason) release);
      inherit kernel;
      specs = every;
    };

  /**
    Whether the shared cases of the matrix give what they should; those that do not are named.
  */
  selectCheck =
    set:
    let
      cases = import ../../tests/nix/select.nix;
      failed = filter (file: !cases.${file}.agrees) (attrNames cases);
    in
    if failed == [ ] then
      script set "select-cases" { } "echo every case agrees > $out"
    else
      throw "select differs from the shared cases: ${builtins.concatStringsSep ", " failed}";

  forSystems =
    nixpkgs: make:
    listToAttrs (
      map (system: {
        name = system;
        value = make system (cells.prepare (packageSet nixpkgs system));
      }) (filter (system: packageSet nixpkgs system != null) systems)
    );

  /**
    The outputs of a kernel's own flake.

    # Type
    kernelFlake :: nixpkgs -> { self, path, test ? Bool, options ? AttrSet, rows ? (Row -> Bool) } -> Outputs
  */
  kernelFlake =
    nixpkgs:
    {
      self,
      path,
      test ? true,
      options ? { },
      rows ? (_: true),
    }:
    let
      made = forSystems nixpkgs (
        system: set:
        ofKernel {
          root = path;
          inherit set system rows;
          options = {
            load-test = if test then null else "skip";
          } // options;
        }
        // {
          inherit set;
        }
      );
      each = make: mapAttrs (_: make) made;
    in
    {
      packages = each (found: rec {
        kernels = folder found.set "${found.kernel.general.name}-wheels" found.released;
        default = kernels;
        bundle = kernels;
        redistributable = kernels;
      });
      legacyPackages = each (_: {
        cells = each (found: found.cells);
        skipped = each (found: found.skipped);
      });
      checks = each (found: {
        kernels = folder found.set "${found.kernel.general.name}-wheels" found.released;
      });
      devShells = each (found: shells.ofCells found.set { command = command found.set; } found.specs);
      apps = each (found: rec {
        builder = app "${command found.set}/bin/builder";
        default = builder;
      });
      formatter = each (found: formatter found.set);
    };
in
{
  inherit kernelFlake ofKernel packageSet;

  /**
    The function of public kernel flakes, with the arguments they pass.

    `pythonCheckInputs` and `pythonNativeCheckInputs` are taken and not used: what a wheel is tested with is pinned.
    `torchVersions` names the torch versions to keep, as a list of `"2.13"` or of rows with `torchVersion`, or as a
    function of the whole list.
  */
  genKernelFlakeOutputs =
    nixpkgs:
    {
      self,
      path,
      doGetKernelCheck ? true,
      pythonCheckInputs ? (_: [ ]),
      pythonNativeCheckInputs ? (_: [ ]),
      torchVersions ? null,
    }:
    let
      whole = util.unique (map (row: row.torch) (matrix.rows "release"));
      asked = if isFunction torchVersions then torchVersions whole else torchVersions;
      version = row: if builtins.isAttrs row then row.torchVersion else row;
      wanted = map (row: util.minor (version row)) asked;
    in
    kernelFlake nixpkgs {
      inherit self path;
      test = doGetKernelCheck;
      rows = row: torchVersions == null || builtins.elem row.torch wanted;
    };

  /**
    The outputs of builder's own flake.

    # Type
    flake :: { self, nixpkgs } -> Outputs
  */
  flake =
    { self, nixpkgs, ... }:
    let
      library = import ./outputs.nix { };
      examples = ../../examples;
      names = filter (name: builtins.pathExists (examples + "/${name}/build.toml")) (attrNames (readDir examples));
      made = forSystems nixpkgs (
        system: set: {
          inherit set;
          kernels = util.genAttrs names (
            name:
            ofKernel {
              root = examples + "/${name}";
              inherit set system;
            }
          );
        }
      );
      each = make: mapAttrs (_: make) made;
      released = found: concatMap (kernel: kernel.released) (builtins.attrValues found.kernels);
    in
    {
      packages = each (
        found:
        mapAttrs (name: kernel: folder found.set "${name}-wheels" kernel.released) found.kernels
        // rec {
          kernels = folder found.set "kernels" (released found);
          builder = command found.set;
          default = kernels;
        }
      );
      # Nix looks here for `.#cells.<system>.…`, and calls an output of a flake that has another name unknown.
      legacyPackages = each (_: {
        cells = each (found: mapAttrs (_: kernel: kernel.cells) found.kernels);
        # What `kernels` has, by name: nix build --rebuild takes these one by one.
        released = each (found: mapAttrs (_: kernel: map (drv: drv.variant) kernel.released) found.kernels);
        skipped = each (found: mapAttrs (_: kernel: kernel.skipped) found.kernels);
      });
      checks = each (found: {
        select = selectCheck found.set;
        kernels = folder found.set "kernels" (released found);
      });
      devShells = each (found: shells.default found.set { command = command found.set; });
      apps = each (found: rec {
        builder = app "${command found.set}/bin/builder";
        default = builder;
      });
      formatter = each (found: formatter found.set);
      lib = {
        kernelFlake = library.kernelFlake nixpkgs;
        genKernelFlakeOutputs = library.genKernelFlakeOutputs nixpkgs;
        # Its older name.
        genFlakeOutputs = library.genKernelFlakeOutputs nixpkgs;
        inherit (import ./. ) config matrix pins sources;
      };
      templates.default = {
        path = ./template;
        description = "A kernel that builds, and its flake: what builder init writes for the CPU";
      };
    };
}
