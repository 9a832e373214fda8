/**
  The outputs of builder's own flake, and of a kernel's flake.
*/
{ util, config, matrix, pins, sources, cells, programs, shell, nixpkgs, workflow, ... }:
let
  inherit (builtins)
    attrNames
    concatMap
    filter
    isFunction
    mapAttrs
    readDir
    readFile
    ;

  inherit (programs)
    app
    command
    folder
    formatter
    script
    ;

  systems = attrNames (fromTOML (readFile ../data/systems.toml));

  /**
    The package set that the input `nixpkgs` has for a system; null where it has none.
  */
  packageSet =
    input: system:
    if input ? builderPackageSet then
      input.builderPackageSet.${system} or null
    else if input.legacyPackages ? ${system} then
      nixpkgs { pkgs = input.legacyPackages.${system}; }
    else
      null;

  /**
    The derivations of a kernel on a system.

    # Type
    ofKernel :: { root, set, options ?, rows ?, perFile ? } -> { cells, released, skipped }
  */
  ofKernel =
    {
      root,
      set,
      system,
      options ? { },
      rows ? (_: true),
      perFile ? false,
    }:
    let
      kernel = config.load root;
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
      build = cells.build set {
        inherit
          root
          kernel
          options
          perFile
          ;
      };
      reason = cells.skipped set;
      possible = util.filterAttrs (_: cell: reason cell == null) release;
      # The newest torch first; for one torch the oldest toolkit first, because most machines have a driver for it.
      before =
        left: right:
        if left.torch != right.torch then
          util.older right.torch left.torch
        else
          left.toolkit != null && right.toolkit != null && util.older left.toolkit right.toolkit;
    in
    {
      cells = mapAttrs (_: build) every;
      released = map build (builtins.attrValues possible);
      byBackend = mapAttrs (_: map build) (
        mapAttrs (_: builtins.sort before) (builtins.groupBy (cell: cell.backend) (builtins.attrValues possible))
      );
      skipped = util.filterAttrs (_: why: why != null) (mapAttrs (_: reason) release);
      inherit kernel;
      specs = every;
    };

  /**
    A check of the shared cases of the matrix; it names the cases that fail.
  */
  selectCheck =
    set: cases:
    let
      failed = filter (file: !cases.${file}.agrees) (attrNames cases);
    in
    if failed == [ ] then
      script set "select-cases" { } "echo every case agrees > $out"
    else
      throw "select differs from the shared cases: ${builtins.concatStringsSep ", " failed}";

  forSystems =
    input: make:
    util.genAttrs (filter (system: packageSet input system != null) systems) (
      system: make system (cells.prepare (packageSet input system))
    );

  # The outputs that every flake has, by a function that makes one for each system.
  programsOf = each: {
    apps = each (found: rec {
      builder = app "${command found.set}/bin/builder";
      default = builder;
    });
    formatter = each (found: formatter found.set);
  };

  /**
    The outputs of a kernel's own flake.

    # Type
    kernelFlake :: nixpkgs -> { self, path, test ? Bool, options ? AttrSet, rows ? (Row -> Bool), perFile ? Bool } -> Outputs
  */
  kernelFlake =
    input:
    {
      self,
      path,
      test ? true,
      options ? { },
      rows ? (_: true),
      perFile ? false,
    }:
    let
      made = forSystems input (
        system: set:
        ofKernel {
          root = path;
          inherit
            set
            system
            rows
            perFile
            ;
          options = {
            load-test = if test then null else "skip";
          } // options;
        }
        // {
          inherit set;
        }
      );
      each = make: mapAttrs (_: make) made;
      wheels = found: folder found.set "${found.kernel.general.name}-wheels" found.released;
    in
    programsOf each
    // {
      packages = each (
        found:
        rec {
          kernels = wheels found;
          default = kernels;
          redistributable = kernels;
        }
        // (workflow { inherit self path found; }).packages
      );
      legacyPackages = each (
        found:
        {
          cells = each (each': each'.cells);
          skipped = each (each': each'.skipped);
        }
        // (workflow { inherit self path found; }).legacyPackages
      );
      checks = each (found: {
        kernels = wheels found;
      });
      devShells = each (found: shell.ofCells found.set { command = command found.set; } found.specs);
    };

  /**
    The function of public kernel flakes, with the arguments they pass.

    `pythonCheckInputs` and `pythonNativeCheckInputs` are accepted and ignored: a wheel is tested with pinned packages.
    `torchVersions` names the torch versions to keep, as a list of `"2.13"` or of rows with `torchVersion`, or as a
    function of the whole list.
  */
  genKernelFlakeOutputs =
    input:
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
    withLayout (kernelFlake input {
      inherit self path;
      test = doGetKernelCheck;
      rows = row: torchVersions == null || builtins.elem row.torch wanted;
    });

  # Public flakes build the layout by default.
  withLayout =
    outputs:
    outputs
    // {
      packages = mapAttrs (_: found: found // { default = found.bundle; }) outputs.packages;
    };
in
{
  inherit
    kernelFlake
    genKernelFlakeOutputs
    ofKernel
    packageSet
    ;

  /**
    The outputs of builder's own flake.

    # Type
    flake :: { examples :: Path, selected :: { String = { agrees :: Bool } } } -> { self, nixpkgs } -> Outputs
  */
  flake =
    { examples, selected }:
    inputs:
    let
      names = filter (name: builtins.pathExists (examples + "/${name}/build.toml")) (attrNames (readDir examples));
      made = forSystems inputs.nixpkgs (
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
      wheels =
        found:
        folder found.set "kernels" (concatMap (kernel: kernel.released) (builtins.attrValues found.kernels));
    in
    programsOf each
    // {
      packages = each (
        found:
        mapAttrs (name: kernel: folder found.set "${name}-wheels" kernel.released) found.kernels
        // rec {
          kernels = wheels found;
          builder = command found.set;
          default = kernels;
        }
      );
      # Nix looks here for `.#cells.<system>.…`, and warns about outputs with unknown names.
      legacyPackages = each (_: {
        cells = each (found: mapAttrs (_: kernel: kernel.cells) found.kernels);
        # The contents of `kernels`, by name: nix build --rebuild takes them one by one.
        released = each (found: mapAttrs (_: kernel: map (drv: drv.variant) kernel.released) found.kernels);
        skipped = each (found: mapAttrs (_: kernel: kernel.skipped) found.kernels);
      });
      checks = each (found: {
        select = selectCheck found.set selected;
        kernels = wheels found;
      });
      devShells = each (found: shell.default found.set { command = command found.set; });
      lib = {
        kernelFlake = kernelFlake inputs.nixpkgs;
        genKernelFlakeOutputs = genKernelFlakeOutputs inputs.nixpkgs;
        # Its older name.
        genFlakeOutputs = genKernelFlakeOutputs inputs.nixpkgs;
        inherit
          config
          matrix
          pins
          sources
          ;
      };
      overlays.default = final: prev: {
        kernel-wheel-builder = command (cells.prepare (nixpkgs { pkgs = final; }));
      };
      templates.default = {
        path = ./template;
        description = "A kernel that builds, and its flake: what builder init writes for the CPU";
      };
    };
}
