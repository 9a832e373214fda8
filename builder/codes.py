"""Every code of a finding, with its title; each has a page in the docs.

Codes are stable: a code is never given to another rule. Below B100: the config cannot be read. From B100: lints.
"""

CODES = {
    "B001": "the config cannot be read",
    "B002": "the config is not valid TOML",
    "B003": "the config is nested too deeply",
    "B004": "the edition is not supported",
    "B010": "unknown key",
    "B011": "missing key",
    "B012": "wrong type",
    "B013": "unknown name",
    "B014": "key of another backend",
    "B015": "keys that exclude each other",
    "B016": "no framework table, or none of several keys of which one is required",
    "B020": "invalid kernel name",
    "B021": "invalid version",
    "B022": "invalid Git URL",
    "B023": "path outside the project",
    "B024": "invalid CUDA capability",
    "B025": "invalid ROCm architecture",
    "B026": "invalid file extension",
    "B027": "invalid name of a kernel table",
    "B028": "unknown Python dependency, or one of another backend",
    "B029": "invalid system",
    "B030": "a listed file does not exist or is no file",
    "B031": "a file leaves the project through a symbolic link",
    "B032": "the Python package does not exist",
    "B033": "the Python package is nested in itself",
    "B034": "a glob matches no file, or stands in an old schema",
    "B035": "too many files",
    "B036": "the license is missing in an old schema",
    "B037": "an upgrade would make two components of one name",
}
