# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""embed_files.py OUTPUT FILE...: writes a C file with the names and the texts of the files, for command.c."""
import pathlib
import sys


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '\\n"'


with open(sys.argv[1], "w") as out:
    out.write('#include "new_plugin/files.h"\n\nconst struct uvd_new_file uvd_new_plugin_files[] = {\n')
    for path in map(pathlib.Path, sys.argv[2:]):
        lines = "\n\t  ".join(literal(line) for line in path.read_text().splitlines())
        out.write(f'\t{{ "{path.name}",\n\t  {lines} }},\n')
    out.write("\t{ 0 },\n};\n")
