/**
  The kernels of `kernels.lock`, each a fixed-output derivation of all files of its commit. The rules are those of
  `builder/make/kernel_lock.py`, with which the build of a cell reads the same entries.
*/
{ util, config, environment, ... }:
let
  inherit (builtins)
    attrValues
    concatStringsSep
    elemAt
    fromJSON
    genList
    isAttrs
    isList
    isString
    listToAttrs
    match
    pathExists
    readFile
    substring
    toJSON
    ;

  file = "kernels.lock";

  refuse =
    root: what:
    throw "'${toString root}/${file}' is not a lock of kernels: ${what}\n  help: write it anew: builder lock";

  isText = pattern: value: isString value && match pattern value != null;

  checked =
    root: entry:
    if !(isAttrs entry && isAttrs (entry.dependency or null) && isAttrs (entry.lock or null)) then
      refuse root "an entry has not the keys 'dependency' and 'lock'"
    else if !(isText ".+" (entry.dependency.repo-id or null)) then
      refuse root "a dependency has no 'repo-id'"
    else if !(isText "[0-9a-f]{40}|[0-9a-f]{64}" (entry.lock.commit or null)) then
      refuse root "the lock of ${toJSON entry.dependency} names no whole commit"
    else if !(isText "sha256-[A-Za-z0-9+/]{43}=" (entry.lock.hash or null)) then
      refuse root "the hash of ${toJSON entry.dependency} is not 'sha256-' and the base64 of 32 bytes"
    else
      entry;

  entries =
    root:
    let
      listed = fromJSON (readFile (root + "/${file}"));
    in
    if isList listed then map (checked root) listed else refuse root "it is not a list";

  digits = util.characters "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  base64 =
    listToAttrs (
      genList (value: {
        name = elemAt digits value;
        inherit value;
      }) 64
    )
    // {
      "=" = 0;
    };

  # Two digits of base64 are three hexadecimal ones; the padding is cut off.
  hexadecimal =
    text:
    let
      digit = value: substring value 1 "0123456789abcdef";
      value = index: base64.${substring index 1 text};
      three =
        index:
        let
          number = 64 * value (2 * index) + value (2 * index + 1);
          high = number / 16;
        in
        digit (high / 16) + digit (high - 16 * (high / 16)) + digit (number - 16 * high);
    in
    substring 0 64 (concatStringsSep "" (genList three 22));

  digestOf = entry: hexadecimal (elemAt (match "sha256-(.*)" entry.lock.hash) 0);

  # The name in the store of `builder`: `nix-store --add-fixed --recursive sha256` of the folder there gives this path.
  tree =
    set: entry:
    let
      digest = digestOf entry;
    in
    derivation (
      environment.fetching set (util.last (attrValues set.pythons)) ./fetch_kernel.py "recursive" digest
      // {
        name = digest;
        repository = entry.dependency.repo-id;
        inherit (entry.lock) commit;
        impureEnvVars = environment.settings ++ [
          "HF_ENDPOINT"
          "HF_TOKEN"
        ];
      }
    );
in
{
  inherit digestOf;

  /**
    The entries of a kernel's lock, each with its tree, for a cell that depends on other kernels; null for other cells,
    and without a lock. All entries are given: only the metadata of a fetched kernel says which others its variant needs.

    # Type
    of :: PackageSet -> Path -> Config -> Cell -> [ { dependency, lock, tree :: Derivation } ] | null
  */
  of =
    set: root: kernel: cell:
    if config.declared "kernel-depends" kernel cell.backend == [ ] || !(pathExists (root + "/${file}")) then
      null
    else
      map (entry: entry // { tree = tree set entry; }) (entries root);
}
