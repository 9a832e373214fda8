{
  description = "The machine's own tools as a package set of builder, where nixpkgs cannot be fetched";

  outputs = _: {
    builderPackageSet =
      let
        systems = [
          "x86_64-linux"
          "aarch64-linux"
        ];
      in
      builtins.listToAttrs (
        map (system: {
          name = system;
          value = import ./. { inherit system; };
        }) systems
      );
  };
}
