#!/usr/bin/env python3
"""Every relative link and picture in the documentation leads to a file: links.py SOURCE_DIR"""
import glob
import os
import re
import sys

root = sys.argv[1]
pages = glob.glob(root + "/*.md") + glob.glob(root + "/docs/*.md") + glob.glob(root + "/examples/**/*.md")
bad = 0
for page in pages:
    text = re.sub(r"```.*?```", "", open(page, encoding="utf-8").read(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target and not os.path.exists(os.path.join(os.path.dirname(page), target)):
            print(f"{page}: {target} leads nowhere")
            bad += 1
print(f"{len(pages)} pages, {bad} bad links")
sys.exit(1 if bad else 0)
