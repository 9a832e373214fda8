/**
  The building blocks of a flake's outputs: scripts, folders of wheels, and the command `builder`.
*/
{ util, pins, tool, cells, ... }:
let

  newest = set: util.findFirst (tag: set.pythons ? ${tag}) null (util.reverse pins.pythons);

  /**
    A derivation that runs a script in the shell of the package set.
  */
  script =
    set: name: variables: text:
    derivation (
      variables
      // {
        inherit name;
        inherit (set) system;
        builder = set.shell;
        # A builtin ends the script: programs of coreutils close their output before they end, and Nix would kill the
        # last of them at that moment.
        args = [
          "-euc"
          "${text}\n:"
        ];
        PATH = builtins.concatStringsSep ":" set.path;
      }
    )
    // {
      meta = { };
    };

  /**
    The command `builder`.
  */
  command =
    set:
    script set "builder"
      {
        python = "${cells.tools set (newest set) "builder-command"}/bin/python";
        source = tool.whole;
        inherit (set) shell;
        checkout = if tool.checkout then "1" else "";
      }
      ''
        mkdir -p "$out/bin" "$out/lib"
        if [ -n "$checkout" ]; then root="$source"; else ln -s "$source" "$out/lib/builder"; root="$out/lib"; fi
        {
          echo "#!$python -IB"
          echo "import sys"
          echo "sys.path.insert(0, '$root')"
          echo "from builder.cli import main"
          echo "sys.exit(main())"
        } > "$out/bin/builder"
        chmod +x "$out/bin/builder"
      '';
in
{
  inherit script command;

  /**
    A folder with copies of the wheels and records of cells.
  */
  folder =
    set: name: built:
    script set name { wheels = map (drv: "${drv}") built; } ''
      mkdir -p "$out/records"
      for cell in $wheels; do
        for wheel in "$cell"/*.whl; do
          cp "$wheel" "$out/"
          cp "$cell/record.json" "$out/records/$(basename "$wheel" .whl).json"
        done
      done
    '';

  /**
    The wheels of cells in the layout of the hub: a folder for each variant, and the card.
  */
  bundle =
    set: name: given: built:
    script set name
      (
        {
          cells = map (drv: "${drv}") built;
          program = "${command set}/bin/builder";
          HOME = "/homeless-shelter";
        }
        // given
      )
      ''
        set -- --output "$out"
        if [ -n "''${commit:-}" ]; then set -- "$@" --commit "$commit"; fi
        if [ -n "''${repository:-}" ]; then set -- "$@" --repo-id "$repository"; fi
        if [ -n "''${card:-}" ]; then
          mkdir -p kernel
          cp "$card" kernel/CARD.md
          set -- "$@" --kernel kernel
        fi
        for cell in $cells; do set -- "$@" "$cell"/*.whl; done
        if [ -n "$cells" ]; then "$program" bundle "$@"; else mkdir "$out"; fi
      '';

  /**
    A program that runs a script in the shell of the package set.
  */
  program =
    set: name: variables: text:
    script set name
      (
        {
          inherit (set) shell;
          inherit text;
          mainPath = builtins.concatStringsSep ":" set.path;
        }
        // variables
      )
      ''
        mkdir -p "$out/bin"
        # A name between two @ stands for a path of the store.
        for place in program bundle wheels tests; do text=''${text//@$place@/''${!place:-}}; done
        printf '#!%s\nset -euo pipefail\nPATH="$PATH:%s"\n%s' "$shell" "$mainPath" "$text" > "$out/bin/$name"
        chmod +x "$out/bin/$name"
      ''
    // {
      meta.mainProgram = name;
    };

  /**
    An application of `nix run`.
  */
  app = program: {
    type = "app";
    inherit program;
    meta.description = "Build, audit and publish the wheels of GPU kernels";
  };

  /**
    The program that `nix fmt` runs.
  */
  formatter =
    set:
    script set "format" { inherit (set) shell; nixfmt = set.nixfmt or "nixfmt"; } ''
      mkdir -p "$out/bin"
      printf '#!%s\nexec %s "$@"\n' "$shell" "$nixfmt" > "$out/bin/format"
      chmod +x "$out/bin/format"
    ''
    // {
      meta.mainProgram = "format";
    };
}
