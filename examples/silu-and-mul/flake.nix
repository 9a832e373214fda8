# A kernel elsewhere names builder by its repository; Nix before 2.26 takes it here by --override-input builder path:…
{
  inputs.builder.url = "path:../..";

  outputs = { self, builder }: builder.lib.kernelFlake { inherit self; path = ./.; };
}
