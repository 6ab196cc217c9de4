# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""embed_list.py FILE: writes a C file with the table of differences of docs/abi-differences.md, for program/node.c."""
import pathlib
import sys

print('#include "program/node.h"\n\nconst char uvd_program_list[] =')
for line in pathlib.Path(sys.argv[1]).read_text().split("| name | call |", 1)[1].splitlines():
    if not line.startswith("|") and not line.startswith(" item"):
        break
    text = ("| name | call |" + line) if line.startswith(" item") else line
    print('\t"' + text.replace("\\", "\\\\").replace('"', '\\"') + '\\n"')
print(";")
