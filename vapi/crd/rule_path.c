/* SPDX-License-Identifier: Apache-2.0 */
/* The fieldPath of a rule: `.spec.a`, `['b.c'].d`, relative to the rule's schema. Source:
 * apiextensions-apiserver pkg/apiserver/schema/cel/validation.go ValidFieldPath(). */
#include "rules.h"

#include <string.h>

struct walk {
    const cJSON *schema;
    struct buf path;
};

static bool step(struct walk *w, struct str name)
{
    const cJSON *properties = json_get(w->schema, "properties"),
                *more = json_get(w->schema, "additionalProperties");

    if (json_count(properties)) {
        w->schema = json_get_str(properties, name);
        if (w->path.n)
            buf_char(&w->path, '.');
        buf_add(&w->path, name);
        return w->schema != NULL;
    }
    if (!more)
        return false;
    buf_char(&w->path, '[');
    buf_add(&w->path, name);
    buf_char(&w->path, ']');
    w->schema = more;
    return true;
}

/* The end of a string in single quotes at the start of s; 0: it has none. */
static size_t quoted_end(struct str s)
{
    for (size_t i = 1; i < s.n; i++) {
        if (s.p[i] == '\'' && s.p[i - 1] != '\\')
            return i + 1;
    }
    return 0;
}

static bool unescape(struct arena *a, struct str s, struct str *ret)
{
    static const char from[] = "abfnrtv'\\", to[] = "\a\b\f\n\r\t\v'\\";
    char *out = arena_alloc(a, s.n + 1);
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++) {
        const char *found;

        if (s.p[i] != '\\' || i + 1 == s.n) {
            out[n++] = s.p[i];
            continue;
        }
        found = s.p[i + 1] ? strchr(from, s.p[i + 1]) : NULL;
        if (!found)
            return false;
        out[n++] = to[found - from];
        i++;
    }
    *ret = (struct str){out, n};
    return true;
}

static bool in_brackets(struct walk *w, struct arena *a, struct str *rest)
{
    size_t end = rest->n && rest->p[0] == '\'' ? quoted_end(*rest) : 0;
    struct str name;

    if (!end || end == rest->n || rest->p[end] != ']' ||
        !unescape(a, str_sub(*rest, 1, end - 2), &name))
        return false;
    *rest = str_from(*rest, end + 1);
    return step(w, name);
}

static bool behind_dot(struct walk *w, struct str *rest)
{
    size_t n = 0;

    while (n < rest->n && !strchr(".[]", rest->p[n]))
        n++;
    if (!n)
        return false;
    struct str name = str_sub(*rest, 0, n);
    *rest = str_from(*rest, n);
    return step(w, name);
}

bool crd_rule_path(struct arena *a, const cJSON *schema, struct str text, struct str *ret)
{
    struct walk w = {.schema = schema, .path = BUF_INIT(0)};
    bool good = !memchr(text.p, 0, text.n);

    while (good && text.n) {
        char c = text.p[0];

        text = str_from(text, 1);
        good = c == '.' ? behind_dot(&w, &text) : c == '[' ? in_brackets(&w, a, &text) : false;
    }
    if (good)
        *ret = arena_str(a, buf_str(&w.path));
    buf_fini(&w.path);
    return good;
}
