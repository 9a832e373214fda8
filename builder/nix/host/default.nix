/**
  The package set of the machine's own tools; the interface is documented in `docs/nix.md`.

  Nix hashes none of these tools: a wheel's record says which they were. The sandbox has to show them
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
