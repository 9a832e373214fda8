/**
  Globs of a `src`: `*`, `?` and `[…]` match within a folder, `**` matches any number of folders.
*/
{ util, ... }:
let
  inherit (builtins)
    concatStringsSep
    head
    isString
    length
    match
    replaceStrings
    split
    stringLength
    substring
    tail
    ;
  inherit (util) hasPrefix;

  special = util.characters "\\.+(){}^$|[]";

  isGlob = path: match ".*[*?[].*" path != null;

  # A segment of a glob as a regular expression.
  expression =
    segment:
    concatStringsSep "" (
      map (
        piece:
        if isString piece then
          replaceStrings special (map (character: "\\${character}") special) piece
        else
          let
            token = head piece;
          in
          if token == "*" then
            ".*"
          else if token == "?" then
            "."
          else if hasPrefix "[!" token then
            "[^${substring 2 (stringLength token) token}"
          else
            token
      ) (split "(\\*|\\?|\\[!?]?[^]]*])" segment)
    );

  matches =
    pattern: parts:
    if pattern == [ ] then
      parts == [ ]
    else if head pattern == "**" then
      matches (tail pattern) parts || (parts != [ ] && matches pattern (tail parts))
    else
      parts != [ ] && match (expression (head pattern)) (head parts) != null && matches (tail pattern) (tail parts);

  literal =
    pattern:
    if length pattern > 1 && !(isGlob (head pattern)) then
      [ (head pattern) ] ++ literal (tail pattern)
    else
      [ ];
in
{
  inherit isGlob;

  /**
    The folders of a pattern before its first wildcard. Patterns and paths are lists of segments.

    # Type
    literal :: [ String ] -> [ String ]
  */
  inherit literal;

  /**
    Whether a path matches a pattern.

    # Type
    matches :: [ String ] -> [ String ] -> Bool
  */
  inherit matches;
}
