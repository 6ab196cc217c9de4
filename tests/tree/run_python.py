# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""run_python.py PAGE: runs the examples of docs/python.md on the device of this process tree, as doctest does."""
import doctest
import pathlib
import re
import sys

text = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
test = doctest.DocTestParser().get_doctest("\n".join(blocks), {"__name__": "page"}, sys.argv[1], sys.argv[1], 0)
result = doctest.DocTestRunner().run(test)
print(f"{result.attempted} examples, {result.failed} failed")
sys.exit(result.failed != 0 or result.attempted < 20)
