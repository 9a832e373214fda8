/**
  The outputs of a flake that workflows of public kernel repositories use. In `packages` every value is a derivation, as
  flakes require; sets are in `legacyPackages`.

  # Type
  { self, path, found } -> { packages, legacyPackages }
*/
{ util, programs, ... }:
{
  self,
  path,
  found,
}:
let
  inherit (builtins) mapAttrs;
  inherit (found) set kernel;
  inherit (kernel.general) name;
  # These values become words of a shell command.
  plain =
    key: value:
    if value == null || builtins.match "[A-Za-z0-9][A-Za-z0-9._/-]*" value != null then
      value
    else
      throw "general.hub.${key} of ${name} is no name of the hub: run 'builder check'";
  repository = plain "repo-id" (kernel.general.hub.repo-id or null);
  branch = plain "branch" (kernel.general.hub.branch or null);
  given =
    (if self ? rev then { commit = self.rev; } else { })
    // (if repository == null then { } else { inherit repository; })
    // (
      if builtins.pathExists (path + "/CARD.md") then
        {
          card = builtins.path {
            path = path + "/CARD.md";
            name = "CARD.md";
          };
        }
      else
        { }
    );
  layout = kind: programs.bundle set "${name}-${kind}" given;
  firsts = mapAttrs (_: builtins.head) found.byBackend;
  bundle = layout "bundle" found.released;
  ciTest =
    drv:
    programs.program set "ci-test"
      {
        wheels = "${drv}";
        tests = builtins.path {
          path = path + "/tests";
          name = "tests";
        };
      }
      ''
        # The torch and the pytest of this machine: no wheel of CUDA's libraries is in the build.
        site=$(mktemp -d)
        trap 'rm -rf "$site"' EXIT
        ''${PYTHON:-python3} -c 'import sys, zipfile; [zipfile.ZipFile(w).extractall(sys.argv[1]) for w in sys.argv[2:]]' "$site" @wheels@/*.whl
        cd @tests@
        PYTHONPATH="$site''${PYTHONPATH:+:$PYTHONPATH}" ''${PYTHON:-python3} -m pytest -p no:cacheprovider -m kernels_ci . "$@"
      '';
  hasTests = builtins.pathExists (path + "/tests");
  ciTests =
    if hasTests then
      mapAttrs (_: ciTest) (util.keyed "variant" found.released)
    else
      { };
  preferred = [
    "cuda"
    "rocm"
    "xpu"
    "metal"
    "cpu"
  ];
  best = util.findFirst (backend: firsts ? ${backend}) null preferred;
in
{
  packages = {
    inherit bundle;
    ci = layout "ci" (builtins.attrValues firsts);
    build-and-copy = programs.program set "build-and-copy" { inherit bundle; } ''
      mkdir -p build
      for variant in @bundle@/*; do
        rm -rf "build/''${variant##*/}"
        cp -r "$variant" build/
      done
      chmod -R u+w build
    '';
  }
  // (
    if repository == null then
      { }
    else
      {
        build-and-upload =
          programs.program set "build-and-upload"
            {
              inherit bundle;
              program = "${programs.command set}/bin/builder";
            }
            ''
              exec @program@ publish @bundle@ hub:${repository}${
                if branch == null then "" else " --branch ${branch}"
              } "$@"
            '';
      }
  )
  // (if hasTests && best != null then { ci-test = ciTest firsts.${best}; } else { });
  legacyPackages = {
    backendBundle = mapAttrs (backend: layout "${backend}-bundle") found.byBackend;
    backendCi = mapAttrs (backend: drv: layout "${backend}-ci" [ drv ]) firsts;
    inherit ciTests;
    variants = map (drv: drv.variant) found.released;
    archVariants = map (drv: drv.variant) found.released;
  };
}
