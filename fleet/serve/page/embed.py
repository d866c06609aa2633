#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the page's files as C that defines page_files.h: embed.py OUTPUT FILE... ; index.html is served as /."""
import os
import sys

TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
WIDTH = 16


def array(name, data):
    """The bytes as a C array."""
    rows = (data[i:i + WIDTH] for i in range(0, len(data), WIDTH))
    return f"static const char {name}[] = {{\n" + "\n".join(
        "    " + ",".join(f"'\\x{byte:02x}'" for byte in row) + "," for row in rows) + "\n};\n"


def main(output, *paths):
    parts = ['#include "page_files.h"\n']
    rows = []
    for i, path in enumerate(paths):
        with open(path, "rb") as f:
            parts.append(array(f"PAGE_FILE_{i}", f.read()))
        base = os.path.basename(path)
        url = "/" if base == "index.html" else "/" + base
        kind = TYPES[os.path.splitext(base)[1]]
        rows.append(f'    {{"{url}", "{kind}; charset=utf-8", PAGE_FILE_{i}, sizeof(PAGE_FILE_{i})}},\n')
    parts.append("const struct fleet_page_file FLEET_PAGE_FILES[] = {\n" + "".join(rows) + "};\n")
    parts.append(f"const size_t FLEET_PAGE_N_FILES = {len(rows)};\n")
    with open(output, "w", encoding="utf-8") as f:
        f.write("".join(parts))


main(*sys.argv[1:])
