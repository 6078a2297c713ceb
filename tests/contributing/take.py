#!/usr/bin/env python3
"""Writes the blocks of a page that stand below `<!-- file: NAME -->`.

    take.py PAGE.md FOLDER
"""
import os
import re
import sys

page, folder = sys.argv[1:]
with open(page, encoding="utf-8") as f:
    text = f.read()
for name, block in re.findall(r"^<!-- file: (\S+) -->\n+```\w*\n(.*?)^```$", text, re.M | re.S):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(block)
