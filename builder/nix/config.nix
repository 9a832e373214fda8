/**
  Read a `build.toml` of one of the schemas that Nix knows. Python checks the rest.
*/
{ util, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    filter
    isString
    pathExists
    readFile
    typeOf
    ;

  /**
    The config in the current schema, from the table of a file of edition 5 or 6, or of schema 4.

    # Type
    upgrade :: String -> Table -> Config
  */
  upgrade =
    place: table:
    let
      general = table.general or (throw "${place} has no [general] table: run 'builder check'");
      edition = general.edition or 4;
      v4 =
        general ? backends
        && (
          general ? version || general ? license || general ? source || table ? torch-noarch || (table.torch or { }) ? stable-abi
        );
      stable = table.torch.stable-abi or null;
      torch = table.torch // {
        stable-abi = util.genAttrs general.backends (_: stable);
      };
    in
    if general ? edition && typeOf edition != "int" || edition != 4 && edition != 5 && edition != 6 then
      throw "${place} is of edition ${toString edition}, and this builder reads edition 5 and the preview of 6: get a newer builder, or correct 'general.edition'"
    else if edition == 4 && !v4 then
      throw "${place} is of a schema that Nix does not read: run 'builder update' in its folder"
    else if isString stable then
      table // { inherit torch; }
    else
      table;
in
{
  inherit upgrade;

  /**
    The config of the kernel in a folder.

    # Type
    load :: Path -> Config
  */
  load =
    root:
    let
      file = root + "/build.toml";
    in
    if pathExists file then
      upgrade (toString file) (fromTOML (readFile file))
    else
      throw "${toString root} has no build.toml: name the folder of a kernel, or make one with 'builder init'";

  /**
    The framework of a kernel: the name of its table in the config.

    # Type
    framework :: Config -> String
  */
  framework =
    config:
    if config ? torch then
      "torch"
    else if config ? torch-noarch then
      "torch-noarch"
    else if config ? tvm-ffi then
      "tvm-ffi"
    else
      "ctypes";

  /**
    The components of a backend.

    # Type
    partsOf :: Config -> String -> [ Component ]
  */
  partsOf =
    config: backend: filter (part: part.backend == backend) (attrValues (config.kernel or { }));

  /**
    The tables of the bindings, of the extensions that any of the components belongs to, and of the components.

    # Type
    tables :: Config -> [ Component ] -> [ Table ]
  */
  tables =
    config: parts:
    let
      extensions = config.extension or { };
      isUsed = name: any (part: part.extension or null == name) parts;
    in
    [
      (config.torch or { })
      (config.tvm-ffi or { })
      (config.ctypes or { })
    ]
    ++ map (name: extensions.${name}) (filter isUsed (attrNames extensions))
    ++ parts;

  /**
    A list of `[general]` for all backends, with that for one of them.

    # Type
    declared :: String -> Config -> String -> [ a ]
  */
  declared =
    key: config: backend:
    (config.general.${key} or [ ]) ++ (config.general.${backend}.${key} or [ ]);

  /**
    The Python module of the kernel.

    # Type
    module :: Config -> String
  */
  module = config: builtins.replaceStrings [ "-" ] [ "_" ] config.general.name;
}
