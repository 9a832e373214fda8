{
  description = "The machine's own tools as a package set of builder, where nixpkgs cannot be fetched";

  outputs =
    _:
    let
      forSystems =
        make:
        builtins.listToAttrs (
          map
            (system: {
              name = system;
              value = make (import ./. { inherit system; });
            })
            [
              "x86_64-linux"
              "aarch64-linux"
            ]
        );
    in
    {
      builderPackageSet = forSystems (set: set);

      # nix develop looks for this in nixpkgs.
      legacyPackages = forSystems (set: {
        bashInteractive = derivation {
          name = "bash";
          inherit (set) system shell;
          builder = set.shell;
          args = [
            "-euc"
            "mkdir -p $out/bin; ln -s $shell $out/bin/bash; :"
          ];
          PATH = builtins.concatStringsSep ":" set.path;
        };
      });
    };
}
