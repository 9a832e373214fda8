/**
  A stub of nixpkgs: the names and shapes of the attributes that builder uses. Tests evaluate the mapping with it, on
  machines without nixpkgs.
*/
{
  system ? "x86_64-linux",
  rocm ? true,
}:
let
  package =
    name:
    derivation {
      inherit name system;
      builder = "/bin/sh";
    };
  python =
    version:
    package "python3-${version}"
    // {
      inherit version;
      # Called with a function of the set of packages, as the real one is.
      withPackages =
        choose:
        derivation {
          name = "python3-${version}-env";
          inherit system;
          builder = "/bin/sh";
          packages = choose { pip = package "python3-${version}-pip"; };
        };
    };
  cuda = {
    cudatoolkit = package "cuda-merged";
    backendStdenv.cc = package "gcc-wrapper-13";
  };
  # Names of the folders of pkgs/development/rocm-modules.
  rocmNames = [
    "hipblas"
    "hipblas-common"
    "hipblaslt"
    "hipcc"
    "hipcub"
    "hipfft"
    "hip-common"
    "hiprand"
    "hipsolver"
    "hipsparse"
    "rocm-cmake"
    "rocm-comgr"
    "rocm-core"
    "rocm-device-libs"
    "rocm-runtime"
    "rocminfo"
    "rocprim"
    "rocrand"
    "rocthrust"
  ];
in
{
  stdenv = {
    hostPlatform = {
      inherit system;
      isLinux = builtins.match ".*-linux" system != null;
    };
    cc = package "gcc-wrapper" // {
      cc = package "gcc" // {
        lib = package "gcc-lib";
      };
      bintools = package "binutils-wrapper";
    };
  };
  python310 = python "3.10.20";
  python311 = python "3.11.15";
  python312 = python "3.12.13";
  python313 = python "3.13.12";
  python314 = python "3.14.3";
  bash = package "bash";
  symlinkJoin =
    {
      name,
      paths,
      postBuild ? "",
    }:
    derivation {
      inherit
        name
        system
        paths
        postBuild
        ;
      builder = "/bin/sh";
    };
  cacert = package "nss-cacert";
  coreutils = package "coreutils";
  findutils = package "findutils";
  gnugrep = package "gnugrep";
  gnused = package "gnused";
  nixfmt-rfc-style = package "nixfmt";
  patchelf = package "patchelf";
  util-linux = package "util-linux";
  zlib = package "zlib";
  cudaPackages_12_6 = cuda;
}
// (
  if rocm then
    {
      rocmPackages =
        builtins.listToAttrs (
          map (name: {
            inherit name;
            value = package name;
          }) rocmNames
        )
        // {
          clr = package "clr" // {
            version = "7.1.1";
          };
          llvm.clang = package "rocm-clang-wrapper";
        };
    }
  else
    { }
)
