# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""embed_alias.py FILE: prints the text of --netlink-alias as C."""
import json
import pathlib
import sys

print('#include "daemon/internal.h"\n')
print("const char uvd_netlink_alias[] =")
for line in pathlib.Path(sys.argv[1]).read_text(encoding="ascii").splitlines():
    print(f"\t{json.dumps(line + chr(10))}")
print("\t;")
