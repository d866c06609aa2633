# SPDX-License-Identifier: Apache-2.0
"""What the lint scripts share: which files there are, and C source without comments and strings.

A script prints one line `file:line: finding` each and ends with 1 when there was one.
"""
import os
import re
import subprocess
import sys

TREE = os.environ.get("LINT_TREE") or os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("base", "kube", "store", "config", "translate", "vapi", "embedded", "syncer", "fleet", "cli")  # lowest first
# Folders of rooms, lowest first. Those of one line know nothing of each other; files beside them are above all.
FOLDERS = {
    "vapi": (
        ("net", "types"),
        ("cel",),
        ("crd",),
        ("types/fields", "kinds/rules"),
        ("kinds/pod",),
        ("kinds",),  # with its folder per group of the API
        ("core",),
        ("auth", "audit"),
        ("extension",),
        ("admission", "api/flow"),
        ("api/observe",),
        ("api/respond",),
        ("api/request", "api/watch", "api/discovery"),
        ("api/review",),
        ("api/verbs", "api/proxy"),
        ("controllers",),
        ("control_plane",),
    ),
    "syncer": (
        ("host",),
        ("dns", "gpu"),
        ("core",),
        ("nodes",),
        ("objects",),
        ("pods", "streams", "check"),
        ("grants",),
        ("admission",),
    ),
    "fleet": (
        ("core",),
        ("ledger", "telemetry"),
        ("usage",),
        ("grants",),
        ("serve",),
    ),
}

# A comment, a string or character literal, or a preprocessor line with its continuations.
_SKIPPED = re.compile(
    r"""//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|&&|\|\||->|\S")


def files(*suffixes):
    """The tree's files with these suffixes, tracked or new, relative to the tree's root, sorted."""
    out = subprocess.run(["git", "-C", TREE, "ls-files", "-co", "--exclude-standard"],
                         capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted({f for f in out if f.endswith(suffixes) and os.path.isfile(os.path.join(TREE, f))})


_RANK = {room: (i, len(FOLDERS.get(room, ()))) for i, room in enumerate(ROOMS) if room != "vapi"}
_RANK |= {f"{room}/{folder}": (ROOMS.index(room), i)
          for room, rows in FOLDERS.items() for i, row in enumerate(rows) for folder in row}


def rank(folder):
    """(what has the rank: a room, or a folder of one; its rank) of a folder; (None, None) when it has none."""
    while folder and folder not in _RANK:
        deep = folder.split("/")[0] not in FOLDERS or folder.startswith("vapi/kinds/")
        folder = os.path.dirname(folder) if deep else ""
    return (folder, _RANK[folder]) if folder else (None, None)


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as f:
        return f.read()


def is_generated(text):
    """A file that a generator wrote says so in its head."""
    return re.search(r"\bgenerated (by|from)\b", text[:600], re.I) is not None


def code_only(text):
    """The source with comments and literals blanked, line numbers kept."""
    def blank(m):
        kept = re.sub(r"[^\n]", " ", m.group())
        return '""' + kept[2:] if m.group()[0] == '"' else kept
    return _SKIPPED.sub(blank, text)


def tokens(text):
    """(token, line) of C source, without comments, literals and preprocessor lines."""
    text = _DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code_only(text))
    line, at = 1, 0
    for m in _TOKEN.finditer(text):
        line += text.count("\n", at, m.start())
        at = m.start()
        yield m.group(), line


class Function:
    """A function definition: name, first and last line, the tokens of its body."""

    def __init__(self, name, first):
        self.name, self.first, self.last, self.body = name, first, first, []

    @property
    def lines(self):
        return self.last - self.first + 1

    @property
    def complexity(self):
        """McCabe's number as compilers' gates count it: decisions and short-circuits, plus one."""
        return 1 + sum(t in ("if", "for", "while", "case", "&&", "||", "?") for t in self.body)


def functions(text):
    """The function definitions of C source."""
    head, depth, current = [], 0, None
    for token, line in tokens(text):
        if current is None and depth == 0:
            if token == "{":
                depth = 1
                current = _function_of(head)
                head = []
            elif token in (";", "}"):
                head = []
            else:
                head.append((token, line))
            continue
        depth += (token == "{") - (token == "}")
        if current is not None:
            current.body.append(token)
        if depth == 0:
            if current is not None:
                current.last = line
                yield current
            current, head = None, []


def _function_of(head):
    """The function whose body begins after these tokens, or None for a struct, enum or initialiser."""
    depth, name = 0, None
    for i, (token, _) in enumerate(head):
        if token == "=" and depth == 0:
            return None
        if token == "(":
            before = head[i - 1][0] if i else ""
            if depth == 0 and name is None and re.match(r"[A-Za-z_]", before) \
                    and not before.startswith("__attribute"):
                name = before
            depth += 1
        elif token == ")":
            depth -= 1
    return Function(name, head[0][1]) if name else None


def finish(findings, what):
    """Prints the findings and ends the program."""
    for f in findings:
        print(f)
    print(f"{what}: {len(findings)} findings" if findings else f"{what}: clean")
    sys.exit(1 if findings else 0)


DEFINED = set("TDBRVWCG")  # nm's letters of what an object defines for others


def objects(build):
    """{object file: its name, folder/file}"""
    found = {}
    for root, _, names in os.walk(build):
        parts = os.path.relpath(root, build).split(os.sep)
        if parts[0] == "tests" or len(parts) < 2:
            continue
        folder = "/".join(p for p in parts if not p.endswith(".p"))
        found.update({os.path.join(root, n): f"{folder}/{n[:-len('.c.o')]}" for n in names if n.endswith(".c.o")})
    return found
