# SPDX-License-Identifier: Apache-2.0
"""The lint scripts find what they are for, shown on small trees that are wrong in one way each."""
import os
import re
import shutil
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* A file of a small tree, there to be looked at by one script. */\n"


@pytest.fixture
def lint(tmp_path):
    """lint(script, {path: content}) -> (exit code, lines)"""
    def run(script, tree):
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        for path, text in {"tests/lint/exempt": "", ".clang-format": "BasedOnStyle: LLVM\n", **tree}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        r = subprocess.run([os.path.join(HERE, script)], capture_output=True, text=True, check=False,
                           env={**os.environ, "LINT_TREE": str(tmp_path)})
        assert r.stderr == ""
        return r.returncode, r.stdout.splitlines()
    return run


def public(room):
    return f"/* SPDX-License-Identifier: Apache-2.0\n * room: {room}\n *\n * A header of a room, for the test of the layers. */\n"


LAYERS_WRONG = {
    "upward": ({"include/sublet/a.h": public("vapi"), "store/x.c": '#include "sublet/a.h"\n'},
               'store/x.c:1: "sublet/a.h" is of room vapi, above store'),
    "header upward": ({"include/sublet/a.h": public("cli"),
                       "include/sublet/b.h": public("base") + "#include <sublet/a.h>\n"},
                      'include/sublet/b.h:5: "sublet/a.h" is of room cli, above base'),
    "stranger": ({"include/sublet/a.h": public("translate"), "embedded/x.c": '#include "sublet/a.h"\n'},
                 'embedded/x.c:1: "sublet/a.h" is of room translate, a stranger to embedded'),
    "private of another": ({"store/in.h": "", "syncer/x.c": '\n#include "store/in.h"\n'},
                           'syncer/x.c:2: "store/in.h" is private to store'),
    "test of another room": ({"store/in.h": "", "tests/unit/base/t.c": '#include "store/in.h"\n'},
                             'tests/unit/base/t.c:1: "store/in.h" is private to store'),
    "missing": ({"base/x.c": '#include "nowhere.h"\n'}, 'base/x.c:1: "nowhere.h" is not in the tree'),
    "no room": ({"include/sublet/a.h": "/* nothing */\n"},
                "include/sublet/a.h:1: the head comment must say `room: NAME`"),
    "library": ({"vapi/x.c": "#include <sqlite3.h>\n"}, "vapi/x.c:1: <sqlite3.h> belongs to fleet and store"),
    "folder upward": ({"vapi/api/verbs/v.h": "", "vapi/core/x.c": '#include "../api/verbs/v.h"\n'},
                      'vapi/core/x.c:1: "../api/verbs/v.h" is of vapi/api/verbs, not below vapi/core'),
    "folder beside": ({"vapi/auth/a.h": "", "vapi/audit/x.c": '#include "../auth/a.h"\n'},
                      'vapi/audit/x.c:1: "../auth/a.h" is of vapi/auth, not below vapi/audit'),
    "public header of a folder above": (
        {"include/sublet/c.h": public("vapi/controllers"), "vapi/crd/x.c": "#include <sublet/c.h>\n"},
        'vapi/crd/x.c:1: "sublet/c.h" is of vapi/controllers, not below vapi/crd'),
    "impure": ({"translate/x.c": "#include <time.h>\n"}, "translate/x.c:1: <time.h>: translate is pure"),
}


@pytest.mark.parametrize("tree,finding", LAYERS_WRONG.values(), ids=LAYERS_WRONG.keys())
def test_layers_finds(lint, tree, finding):
    code, lines = lint("layers", tree)
    assert (code, lines[0]) == (1, finding)


def objects(script, tmp_path, files):
    """Compiles {folder/file.c: source} as a build directory has it: (exit code, lines) of the script."""
    for name, text in files.items():
        at = tmp_path / os.path.dirname(name) / "liblib.a.p" / (os.path.basename(name) + ".o")
        at.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-w", "-x", "c", "-c", "-o", str(at), "-"], input=text, text=True, check=True)
    r = subprocess.run([os.path.join(HERE, script), str(tmp_path)], capture_output=True, text=True, check=False)
    assert r.stderr == ""
    return r.returncode, r.stdout.splitlines()


DEFINES, CALLS = "int f(void) { return 0; }", "int g(void) { return f(); }"
GRAPH_WRONG = {
    "room": ({"vapi/core/a.c": DEFINES, "store/b.c": CALLS},
             "store/b -> vapi/core/a: vapi/core is not below store: f"),
    "folder": ({"vapi/api/verbs/a.c": DEFINES, "vapi/core/b.c": CALLS},
               "vapi/core/b -> vapi/api/verbs/a: vapi/api/verbs is not below vapi/core: f"),
    "folder without a rank": ({"vapi/core/a.c": DEFINES, "vapi/new/b.c": CALLS},
                              "vapi/new/b: tests/lint/source.py gives its folder no rank"),
}


@pytest.mark.parametrize("files,finding", GRAPH_WRONG.values(), ids=GRAPH_WRONG.keys())
def test_graph_finds(tmp_path, files, finding):
    code, lines = objects("graph", tmp_path, files)
    assert code == 1 and finding in lines


def test_graph_accepts(tmp_path):
    lines = objects("graph", tmp_path, {"vapi/core/a.c": DEFINES, "vapi/api/verbs/b.c": CALLS})[1]
    assert not any("->" in line or "rank" in line for line in lines)
    assert lines[-1].startswith("2 files, 1 dependencies")


PREFIXES_WRONG = {
    "none": ({"store/a.c": "int f(void) { return 0; }"},
             "store/a: f: no prefix that tests/lint/prefixes declares"),
    "of another room": ({"syncer/a.c": "int store_get(void) { return 0; }"}, "syncer/a: store_get: store_ is of store"),
    "of a folder below": ({"syncer/a.c": "int dns_get(void) { return 0; }"}, "syncer/a: dns_get: dns_ is of syncer/dns"),
    "constant": ({"kube/a.c": "const int POOL_MOST = 1;"}, "kube/a: POOL_MOST: pool_ is of translate"),
    "unused": ({"store/a.c": "int f(void) { return 0; }"}, "tests/lint/prefixes: no symbol needs store of store"),
}


@pytest.mark.parametrize("files,finding", PREFIXES_WRONG.values(), ids=PREFIXES_WRONG.keys())
def test_prefixes_finds(tmp_path, files, finding):
    code, lines = objects("prefixes", tmp_path, files)
    assert code == 1 and finding in lines


def test_prefixes_accepts(tmp_path):
    lines = objects("prefixes", tmp_path, {
        "vapi/core/a.c": "static int f(void) { return 0; } int resource_get(void) { return f(); }",
        "vapi/api/verbs/b.c": "int vapi_get(void) { return 0; } int pod_security_hook(void); int _hook; ",
        "kube/c.c": "int pod_security_get; int pod_get;", "vapi/controllers/d.c": "int job_controller; int cron_job_controller;"})[1]
    assert not [line for line in lines if not line.startswith("tests/lint/prefixes: no symbol needs")][:-1]


def test_layers_accepts(lint):
    assert lint("layers", {
        "include/sublet/a.h": public("base"), "include/sublet/s.h": public("store"),
        "store/in.h": "", "store/x.c": '#include "in.h"\n#include "sublet/a.h"\n#include <sqlite3.h>\n',
        "vapi/net/n.h": "", "vapi/api/verbs/x.c": '#include "vapi/net/n.h"\n#include "sublet/s.h"\n',
        "include/sublet/c.h": public("vapi/controllers"), "syncer/x.c": "#include <sublet/c.h>\n",
        "vapi/control_plane/x.c": "#include <sublet/c.h>\n",
        "tests/unit/store/t.c": '#include "store/in.h"\n#include "sublet/a.h"\n'})[0] == 0


BANNED_WRONG = {
    "call": ("vapi/x.c", "sprintf(a, b);", "vapi/x.c:1: sprintf: use a struct buf"),
    "cjson": ("vapi/x.c", "x = cJSON_PrintUnformatted(y);",
              "vapi/x.c:1: cJSON_PrintUnformatted: use json_parse, json_print"),
    "heap": ("store/x.c", "\nfree(p);", "store/x.c:2: free: use an arena, or mem_ of base"),
    "heap passed on": ("store/x.c", "f(p, free);", "store/x.c:1: free: use an arena, or mem_ of base"),
    "clock": ("syncer/x.c", "time(0);", "syncer/x.c:1: time: use struct clock, struct rng"),
    "in a test": ("tests/unit/base/x.c", "strcpy(a, b);",
                  "tests/unit/base/x.c:1: strcpy: use struct str and struct buf"),
    "constant seed": ("vapi/x.c", "a = f(str_hash(g(b, c), 0x1f), d);",
                      "vapi/x.c:1: a hash with a constant seed: hash_seed(), or sha256() for a stable one"),
    "constant seed inside": ("vapi/x.c", "a = str_hash(b,\n  str_hash(c, 0));",
                             "vapi/x.c:2: a hash with a constant seed: hash_seed(), or sha256() for a stable one"),
}


@pytest.mark.parametrize("path,text,finding", BANNED_WRONG.values(), ids=BANNED_WRONG.keys())
def test_banned_finds(lint, path, text, finding):
    code, lines = lint("banned", {path: text})
    assert (code, lines[0]) == (1, finding)


def test_banned_accepts(lint):
    text = '/* free(p) */ // sprintf()\nx->free(p); s = "strcpy(a)"; snprintf(a, 1, b); mem_free(p); t.time(1);\n'
    text += "h = str_hash(a, str_hash(f(b, 0), hash_seed())) + str_hash(c, x->seed ^ 1) + g(d, 0);\n"
    free = "free(p); h = str_hash(a, 7);"
    assert lint("banned", {"vapi/x.c": text, "base/mem.c": "p = malloc(1);", "tests/sim/t.c": free})[0] == 0


def function(name, body):
    return f"static int {name}(int a)\n{{\n{body}\n}}\n"


def comment(columns, c="x"):
    return "/* " + c * (columns - 6) + " */\n"


SIZES_WRONG = {
    "wide comment": ({"base/x.c": "int a;\n" + comment(101)}, "base/x.c:2: 101 columns (limit 100)"),
    "wide code": ({"include/sublet/a.h": "#define A " + "x" * 91 + "\n"}, "include/sublet/a.h:1: 101 columns (limit 100)"),
    "wide test": ({"tests/unit/base/x.c": comment(101)}, "tests/unit/base/x.c:1: 101 columns (limit 100)"),
    "long function": ({"base/x.c": function("f", "a++;\n" * 100)}, "base/x.c:1: f: lines 104 (limit 100)"),
    "complex function": ({"base/x.c": "int g;\n" + function("f", "if (a && a) a++;\n" * 10)},
                         "base/x.c:2: f: complexity 21 (limit 20)"),
    "long header": ({"include/sublet/a.h": "\n" * 151}, "include/sublet/a.h:150: a header of 151 lines (limit 150)"),
    "long private header": ({"store/a.h": "\n" * 151}, "store/a.h:150: a header of 151 lines (limit 150)"),
    "long file": ({"base/x.c": "\n" * 1501}, "base/x.c:1500: 1501 lines (limit 1500)"),
    "no reason": ({"base/x.c": "\n" * 1001}, "base/x.c:1000: 1001 lines: over 1000 the head comment says why"),
    "readme": ({"base/README.md": "\n" * 61}, "base/README.md:60: 61 lines (limit 60)"),
    "stale exemption": ({"tests/lint/exempt": "# x\nlines base/x.c:f a table\n"},
                        "tests/lint/exempt:2: nothing needs it any more: lines base/x.c:f"),
    "bad exemption": ({"tests/lint/exempt": "lines base/x.c:f\n"},
                      "tests/lint/exempt:1: needs `lines|complexity path:function reason`"),
}


@pytest.mark.parametrize("tree,finding", SIZES_WRONG.values(), ids=SIZES_WRONG.keys())
def test_sizes_finds(lint, tree, finding):
    code, lines = lint("sizes", tree)
    assert (code, lines[0]) == (1, finding)


def test_sizes_accepts(lint):
    long = function("f", "a++;\n" * 100)
    table = "static const struct row rows[] = {\n" + "{ROW(1), 2},\n" * 300 + "};\n"
    assert lint("sizes", {"base/y.c": comment(100) + comment(100, "\u00e9"), "tests/unit/base/x.c": comment(100),
                          "include/sublet/tbl/u.h": comment(101),
                          "base/x.c": table + long + "struct s {\n" + "int a;\n" * 200 + "};\n",
                          "tests/lint/exempt": "lines base/x.c:f a flat table\n",
                          "include/sublet/tbl/t.h": "/* generated by gen */\n" + "\n" * 3000})[0] == 0


def test_format_finds(lint):
    code, lines = lint("format", {"base/x.c": "int a;\nint   b;\n"})
    assert (code, lines[0]) == (1, "base/x.c:2: run clang-format-16 -i (1 lines)")


def test_heads_finds(lint):
    code, lines = lint("heads", {"base/x.c": "/* SPDX-License-Identifier: Apache-2.0 */\nint a;\n",
                                 "tests/x.py": "x = 1\n", "base/ok.c": HEAD})
    assert code == 1
    assert lines[:2] == ["base/x.c:1: the head comment does not say why the file exists",
                         "tests/x.py:1: no licence line (SPDX-License-Identifier: Apache-2.0)"]


@pytest.mark.parametrize("path,old,new,finding", [
    ("include/sublet/tbl/options.h", '"off|warn|enforce"', '"off|enforce"', "run charts/generate"),
    ("docs/options.md", "`--verdict`", "`--verdicts`", "docs/options.md: run charts/generate"),
    ("config/pool.c", '{"runtimeClass",', '{"runtimeClasses",', "charts/schema.yaml: pool"),
    ("translate/pod.c", '    {"os", FIELD', '    {"nodeName", FIELD_SCALAR},\n    {"os", FIELD', "fence.json: run charts/generate"),
    ("translate/pod_volumes.c", '{"emptyDir", VOLUME_PLAIN, EMPTY_DIR_FIELDS}', '{"emptyDir", VOLUME_PLAIN, NULL}',
     "emptyDir is made by hand"),
    ("config/binding.c", '{"lend", read_lend}, ', "", "charts/schema.yaml: binding"),
], ids=["option", "page", "pool", "field", "volume", "binding"])
def test_generated_finds(tmp_path, path, old, new, finding):
    tree = os.path.dirname(os.path.dirname(HERE))
    for part in ("include/sublet", "charts", "docs", "kube", "config", "translate", "syncer"):
        shutil.copytree(os.path.join(tree, part), tmp_path / part)
    check = [tmp_path / "charts/generate", "--check"]
    assert subprocess.run(check, check=False).returncode == 0
    text = (tmp_path / path).read_text()
    assert text.count(old) == 1
    (tmp_path / path).write_text(text.replace(old, new))
    r = subprocess.run(check, capture_output=True, text=True, check=False)
    assert r.returncode == 1 and finding in r.stderr


WORDY = {
    "a comment": ("base/x.c", "/* Tells nobody. */\n", ["Tells", "nobody"]),
    "a document": ("docs/x.md", "It is told.\n```sh\necho told\n```\n", ["told"]),
    "a docstring": ("tests/x.py", 'def f():\n    """Asks."""\n    return "asks"  # told\n', ["Asks", "told"]),
}


@pytest.mark.parametrize("path,text,found", WORDY.values(), ids=WORDY.keys())
def test_words_finds(lint, path, text, found):
    code, lines = lint("words", {path: text})
    assert code == 1
    assert [x.split(": ")[1].split(" ->")[0] for x in lines if " -> " in x] == found


def test_words_accepts(lint):
    assert lint("words", {"base/x.c": 'int f(void); /* Reports to the caller. */\nconst char *s = "nobody";\n'})[0] == 0


def test_no_suite_is_dropped_where_something_is_missing():
    """A tool, a library or a file that a build lacks is an error of the build, not a suite less."""
    tree = os.path.dirname(os.path.dirname(HERE))
    files = subprocess.run(["git", "ls-files", "*meson.build"], cwd=tree, capture_output=True, text=True, check=True).stdout
    found = []
    for path in files.split():
        with open(os.path.join(tree, path), encoding="utf-8") as f:
            found += [f"{path}:{n}: {line.strip()}" for n, line in enumerate(f, 1)
                      if re.search(r"required\s*:\s*(false|get_option)|\.found\(\)|is_variable|fs\.exists|find_program.*required|"
                                   r"disabler\(|subdir_done|build_by_default: false.*test\(", line)]
    assert files and not found, "\n".join(found)
