/**
  The package set of the machine's own tools; `docs/nix.md` documents the interface.

  Nix hashes none of these tools; the record of a wheel names them. The sandbox has to show them
  (`extra-sandbox-paths`, see `host.toml`).

  # Type
  { system :: String, settings ? Table } -> PackageSet
*/
{
  system,
  settings ? builtins.fromTOML (builtins.readFile ./host.toml),
}:
{
  inherit system;
  inherit (settings) path pythons certificates;
  name = "host";
  shell = settings.shell;
  skip = settings.skip or [ ];
  toolkits = settings.toolkits or { };
}
