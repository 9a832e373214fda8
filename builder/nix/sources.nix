/**
  The source set of a kernel: the files that its build reads, by the rules of `builder/kernel/source_set.py`. Other
  files change no derivation. The build reports missing files, all at once.
*/
{ util, config, glob, ... }:
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatLists
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    genList
    length
    match
    pathExists
    readDir
    stringLength
    substring
    ;
  inherit (util) hasPrefix hasSuffix segments;

  inherit (glob) isGlob literal matches;

  names = fromTOML (builtins.readFile ../data/source-files.toml);
  inherit (names) headers;
  outputs = map (folder: "${folder}/") names.outputs;

  endsWith = suffixes: path: any (suffix: hasSuffix suffix path) suffixes;

  normal = path: concatStringsSep "/" (segments path);

  join = folder: name: if folder == "" then name else "${folder}/${name}";

  entries =
    root: folder:
    if pathExists (root + "/${folder}/.") then
      util.filterAttrs (name: _: !(hasPrefix "." name)) (readDir (root + "/${folder}"))
    else
      { };

  # Every file under a folder as { path, link }; Nix cannot see the target of a link.
  walk =
    root: folder:
    concatLists (
      attrValues (
        builtins.mapAttrs (
          name: type:
          if type == "directory" then
            walk root (join folder name)
          else
            [
              {
                path = join folder name;
                link = type == "symlink";
              }
            ]
        ) (entries root folder)
      )
    );

  matching =
    root: path:
    let
      pattern = segments path;
    in
    filter (file: matches pattern (segments file.path)) (walk root (concatStringsSep "/" (literal pattern)));

  # A named file, and whether any part of its path is a link.
  named =
    root: path:
    let
      parts = segments path;
      folder = count: concatStringsSep "/" (genList (builtins.elemAt parts) count);
      isLink = index: (entries root (folder index)).${builtins.elemAt parts index} or null == "symlink";
    in
    {
      inherit path;
      link = any isLink (genList (index: index) (length parts));
    };

  # The sources of a table, without matches of its `exclude`.
  sourcesOf =
    root: table:
    let
      out = map segments (table.exclude or [ ]);
    in
    filter (file: !(any (pattern: matches pattern (segments file.path)) out)) (
      concatMap (expand root) (table.src or [ ])
    );

  # The files that an entry of a list stands for.
  expand =
    root: entry:
    let
      path = normal entry;
    in
    if isGlob path && !(pathExists (root + "/${path}")) then
      matching root path
    else if elem ".." (segments path) then
      [ ]
    else
      [ (named root path) ];

  includes =
    kernel:
    (if config.framework kernel == "torch-noarch" then [ ] else [ "csrc" ])
    ++ (kernel.torch.include or [ ])
    ++ (kernel.tvm-ffi.include or [ ])
    ++ (kernel.ctypes.include or [ ])
    ++ concatMap (part: part.include or [ ]) (attrValues (kernel.kernel or { }));

  package =
    kernel:
    if (kernel.wheel or { }) ? package then
      normal kernel.wheel.package
    else if kernel ? tvm-ffi then
      "tvm-ffi-ext/${config.module kernel}"
    else if kernel ? ctypes then
      "ctypes-ext/${config.module kernel}"
    else
      "torch-ext/${config.module kernel}";

  pyext =
    kernel:
    kernel.torch.pyext or kernel.torch-noarch.pyext or kernel.tvm-ffi.pyext or kernel.ctypes.pyext or [
      "py"
      "pyi"
    ];

  licenses =
    root:
    filter (
      name:
      (entries root "").${name} == "regular"
      && match names.license name != null
    ) (attrNames (entries root ""));

  found =
    root: kernel:
    let
      header =
        folder: file:
        endsWith headers file.path && !(folder == "" && any (output: hasPrefix output file.path) outputs);
      headersOf = folder: filter (header folder) (walk root folder);
      extensions = map (extension: ".${extension}") (pyext kernel);
      ships =
        file:
        endsWith extensions file.path
        && !(endsWith names.never-shipped file.path)
        && match ".*/__pycache__/.*" file.path == null;
      links = folder: filter (file: file.link) (walk root folder);
    in
    concatMap (sourcesOf root) (config.tables kernel (attrValues (kernel.kernel or { })))
    ++ concatMap (step: concatMap (expand root) ([ step.script ] ++ (step.inputs or [ ]))) (kernel.generate or [ ])
    ++ concatMap (folder: headersOf (normal folder) ++ links (normal folder)) (includes kernel)
    ++ filter ships (walk root (package kernel))
    ++ concatMap (expand root) (kernel.wheel.data or [ ])
    ++ concatMap (expand root) (if (kernel.wheel or { }) ? readme then [ kernel.wheel.readme ] else [ ])
    ++ map (named root) (licenses root)
    ++ links (package kernel)
    ++ [ (named root "build.toml") ];

  parents =
    path:
    let
      parts = segments path;
    in
    genList (count: concatStringsSep "/" (genList (builtins.elemAt parts) (count + 1))) (length parts);
in
{
  inherit names package;

  /**
    The files that a build for a backend compiles, relative to the root.

    # Type
    compiled :: Path -> Config -> String -> [ String ]
  */
  compiled =
    root: kernel: backend:
    filter (path: !(endsWith headers path)) (
      util.unique (
        map (file: file.path) (
          concatMap (sourcesOf root) (config.tables kernel (config.partsOf kernel backend))
        )
      )
    );

  /**
    The paths of the source set, relative to the root; null when links make it the whole folder.

    # Type
    files :: Path -> Config -> [ String ] | null
  */
  files =
    root: kernel:
    let
      all = found root kernel;
    in
    if any (file: file.link) all then
      null
    else
      attrNames (util.keyed "path" all);

  /**
    The Python files of the package, relative to the root.

    # Type
    modules :: Path -> Config -> [ String ]
  */
  modules =
    root: kernel: filter (hasSuffix ".py") (map (file: file.path) (walk root (package kernel)));

  /**
    The source set in the store.

    # Type
    source :: Path -> Config -> StorePath
  */
  source =
    root: kernel:
    let
      all = found root kernel;
      whole = any (file: file.link) all;
      wanted = foldl' (
        set: file:
        set
        // util.genAttrs (parents file.path) (_: null)
      ) { } all;
      base = stringLength (toString root) + 1;
      relative = path: substring base (stringLength path) path;
      accept =
        path: _:
        let
          name = relative path;
        in
        if whole then
          !(hasPrefix "." (baseNameOf path)) && !(any (output: hasPrefix output "${name}/") outputs)
        else
          wanted ? ${name};
    in
    builtins.path {
      name = "${kernel.general.name}-source";
      path = root;
      filter = accept;
    };
}
