/**
  Pinned wheels as fixed-output derivations, and environments made of them.
*/
{ util, ... }:
let
  inherit (builtins)
    concatStringsSep
    filter
    mapAttrs
    toJSON
    ;

  # Settings of pip and of the network: they decide where a file comes from, and a hash decides its content.
  settings = [
    "PIP_CERT"
    "PIP_CLIENT_CERT"
    "PIP_DEFAULT_TIMEOUT"
    "PIP_EXTRA_INDEX_URL"
    "PIP_FIND_LINKS"
    "PIP_INDEX_URL"
    "PIP_NO_INDEX"
    "PIP_PROXY"
    "PIP_RETRIES"
    "PIP_TRUSTED_HOST"
    "ALL_PROXY"
    "HTTPS_PROXY"
    "HTTP_PROXY"
    "NO_PROXY"
    "all_proxy"
    "http_proxy"
    "https_proxy"
    "no_proxy"
  ];

  script =
    file:
    builtins.path {
      name = baseNameOf file;
      path = file;
    };

  # What derivations have in common in which a Python runs a script. Nix runs a builder by its bare name, with which
  # Python would not find its own folder.
  running = set: interpreter: file: {
    inherit (set) system;
    builder = set.shell;
    args = [
      "-c"
      "exec \"$interpreter\" -IB \"$script\""
    ];
    inherit interpreter;
    script = script file;
    PATH = concatStringsSep ":" set.path;
  };

  # The attributes of a derivation that fetches something with a known hash; its scripts use pip.
  fetching =
    set: interpreter: file: mode: hash:
    running set interpreter file
    // util.fixed mode hash
    // {
      pip = script ./pip.py;
      impureEnvVars = settings;
      certificates = set.certificates or "";
    };

  /**
    A wheel. A file has the same store path from every index, and when `nix-store --add-fixed sha256` added it.

    # Type
    wheel :: PackageSet -> String -> Wheel -> Derivation
  */
  wheel =
    set: tag: pinned:
    derivation (
      fetching set set.pythons.${tag} ./fetch.py "flat" pinned.sha256
      // {
        name = pinned.file;
        project = pinned.name;
        python = tag;
        inherit (pinned) version sha256;
        index = if pinned.index == null then "" else pinned.index;
      }
    );
in
{
  inherit running fetching settings;

  /**
    A package set with the wheels that its cells share, each a derivation that is evaluated at most once.

    # Type
    prepare :: { String = Wheel; } -> PackageSet -> PreparedSet
  */
  prepare =
    pinned: set:
    set
    // {
      wheels = mapAttrs (tag: _: mapAttrs (_: wheel set tag) pinned) set.pythons;
    };

  /**
    A virtual environment with exactly these wheels.

    # Type
    make :: PreparedSet -> String -> { name :: String, wheels :: [ Wheel ] } -> Derivation
  */
  make =
    set: tag:
    { name, wheels }:
    derivation (
      running set set.pythons.${tag} ./environment.py
      // {
        name = "${name}-${tag}";
        pip = script ./pip.py;
        inherit (set) shell;
        PYTHONHASHSEED = "0";
        SOURCE_DATE_EPOCH = "315532800";
        # This module imports nothing of `builder`: the script runs it alone.
        toolkit = script ../toolchain/cuda_wheels.py;
        fixup = set.fixup or "";
        wheels = toJSON (
          map (
            pinned:
            {
              inherit (pinned) file name version;
              path = set.wheels.${tag}.${pinned.file};
            }
            // (if pinned.foreign or false then { foreign = true; } else { })
          ) wheels
        );
      }
    );

  /**
    The Pythons of a package set with pins for a need, the newest first; only its own for a cell that is for one Python.

    # Type
    pythons :: PackageSet -> Pins -> Need -> [ String ]
  */
  pythons =
    set: pins: need:
    filter (
      tag: (need.only or tag) == tag && set.pythons ? ${tag} && pins.environment need tag != null
    ) (util.reverse pins.pythons);
}
