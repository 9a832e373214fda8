{
  # EDIT: put the repository of builder in place of OWNER/REPOSITORY, or make this file by `builder init --builder-url`.
  inputs.builder.url = "github:OWNER/REPOSITORY";
  outputs = { self, builder }: builder.lib.kernelFlake { inherit self; path = ./.; };
}
