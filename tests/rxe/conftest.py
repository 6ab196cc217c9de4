# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
import pathlib
import sys

sys.path.append(pathlib.Path(__file__).resolve().parents[1].as_posix())  # for wirenet.py
