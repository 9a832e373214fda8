/**
  The package set of nixpkgs; `docs/nix.md` documents the interface.
*/
{ util, ... }:
{ pkgs }:
let
  inherit (builtins) concatMap filter listToAttrs;

  tags = [
    "310"
    "311"
    "312"
    "313"
    "314"
  ];
  pythons = filter (tag: pkgs ? "python${tag}") tags;
  python = tag: pkgs."python${tag}".withPackages (packages: [ packages.pip ]);
  system = pkgs.stdenv.hostPlatform.system;
  linux = pkgs.stdenv.hostPlatform.isLinux;

  bin = package: "${package}/bin";

  # Toolkits without pinned wheels, if this nixpkgs has them.
  cuda =
    version:
    let
      name = "cudaPackages_${builtins.replaceStrings [ "." ] [ "_" ] version}";
    in
    if linux && pkgs ? ${name} then
      [
        {
          name = "cuda-${version}";
          # The host compiler of this nvcc: the default one of nixpkgs is newer than CUDA 12 accepts.
          value = {
            CUDA_HOME = "${pkgs.${name}.cudatoolkit}";
          } // (if pkgs.${name} ? backendStdenv then compilers pkgs.${name}.backendStdenv.cc else { });
        }
      ]
    else
      [ ];
  compilers = cc: {
    CC = "${cc}/bin/gcc";
    CXX = "${cc}/bin/g++";
  };

  # ROCm's own packages share one prefix; nixpkgs has one for hipcc, one for clang and one for the device libraries.
  rocmRoot =
    packages:
    pkgs.symlinkJoin {
      name = "rocm-${packages.clr.version}";
      paths = map (name: packages.${name}) (filter (name: packages ? ${name}) rocmParts);
      postBuild = ''
        mkdir -p "$out/lib"
        [ -e "$out/lib/llvm" ] || ln -s ${packages.llvm.clang} "$out/lib/llvm"
      '';
    };
  rocmParts = [
    "clr"
    "hipcc"
    "hip-common"
    "rocm-core"
    "rocm-cmake"
    "rocm-comgr"
    "rocm-device-libs"
    "rocm-runtime"
    "rocminfo"
    "hipblas"
    "hipblas-common"
    "hipblaslt"
    "hipcub"
    "hipfft"
    "hiprand"
    "hipsolver"
    "hipsparse"
    "rocprim"
    "rocrand"
    "rocthrust"
  ];
  rocm =
    if
      linux
      && pkgs ? rocmPackages
      && builtins.all (name: pkgs.rocmPackages ? ${name}) [
        "clr"
        "llvm"
        "rocm-device-libs"
      ]
    then
      [
        {
          name = "rocm-${util.minor pkgs.rocmPackages.clr.version}";
          value = {
            ROCM_PATH = "${rocmRoot pkgs.rocmPackages}";
          };
        }
      ]
    else
      [ ];
in
{
  name = "nixpkgs";
  inherit system;
  pythons = listToAttrs (
    map (tag: {
      name = "cp${tag}";
      value = "${python tag}/bin/python3";
    }) pythons
  );
  path = map bin (
    [
      pkgs.stdenv.cc
      pkgs.stdenv.cc.bintools
      pkgs.coreutils
      pkgs.findutils
      pkgs.gnugrep
      pkgs.gnused
      pkgs.bash
    ]
    ++ (if linux then [ pkgs.util-linux ] else [ ])
  );
  shell = "${pkgs.bash}/bin/bash";
  certificates = "${pkgs.cacert}/etc/ssl/certs/ca-bundle.crt";
  nixfmt = "${pkgs.nixfmt-rfc-style or pkgs.nixfmt}/bin/nixfmt";
  toolkits = listToAttrs (
    concatMap cuda [
      "12.6"
      "12.8"
      "12.9"
    ]
    ++ rocm
  );

  # Programs of pinned wheels (cmake, ninja, nvcc) name a loader that a machine of nixpkgs may lack.
  fixup =
    if linux then
      ''
        loader=$(cat ${pkgs.stdenv.cc}/nix-support/dynamic-linker)
        find "$out" -type f -perm -0100 | while read -r file; do
          if ${pkgs.patchelf}/bin/patchelf --print-interpreter "$file" >/dev/null 2>&1; then
            ${pkgs.patchelf}/bin/patchelf --set-interpreter "$loader" \
              --add-rpath ${pkgs.stdenv.cc.cc.lib}/lib:${pkgs.zlib}/lib "$file"
          fi
        done
        find "$out" -type f -name 'lib*.so*' | while read -r file; do
          ${pkgs.patchelf}/bin/patchelf --add-rpath ${pkgs.stdenv.cc.cc.lib}/lib:${pkgs.zlib}/lib "$file" || true
        done
      ''
    else
      "";
  skip = [ ];
}
