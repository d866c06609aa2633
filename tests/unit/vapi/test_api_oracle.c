/* SPDX-License-Identifier: Apache-2.0 */
/* What a real kube-apiserver answered to a list of requests (data/api.jsonl, recorded by
 * data/record_api.py), sent again here: status, body and warnings must be the same. Uids,
 * revisions, times and managedFields are blanked out on both sides. Differences we decided for are
 * in KNOWN. */
#include "api_harness.h"
#include "cases.h"

#include <sublet/schema.h>

#define NS "recorded"

/* "case/step": why we answer otherwise. */
static const struct known {
    const char *step, *why;
} KNOWN[] = {
    {"strict/5", "the patched object is printed in its own order, without managedFields"},
    {"strict/7", "the patched object is printed in its own order, without managedFields"},
    {"content types/3", "libyaml counts the line where it noticed"},
    {"update of uid/1", "there is no key of etcd to tell"},
    {"merge patch/3", "the patched object is printed in its own order, without managedFields"},
    {"merge patch/11", "the kind is refused, not its fields"},
    {"merge patch/12", "the patched object is printed in its own order, without managedFields"},
    {NULL, NULL},
};

static const char *known_difference(const char *name, size_t step)
{
    char text[256];

    snprintf(text, sizeof(text), "%s/%zu", name, step);
    for (const struct known *k = KNOWN; k->step; k++)
        if (strcmp(k->step, text) == 0)
            return k->why;
    return NULL;
}

/* ---- the request: {ns}, {rv:N} and {uid:N} filled in ---- */

struct run {
    struct harness *h;
    struct tested *t;
    struct answer seen[64];
    size_t n;
};

static void fill_one(struct run *r, struct buf *out, struct str name)
{
    struct str rest = name, kind = str_cut(&rest, ':');
    uint64_t at = 0;

    if (str_eqc(name, "ns")) {
        buf_addc(out, NS);
        return;
    }
    if (!str_to_u64(rest, &at) || at >= r->n) {
        buf_printf(out, "{%.*s}", STR_F(name));
        return;
    }
    buf_add(out, json_str_at(r->seen[at].json,
                             str_eqc(kind, "rv") ? "metadata.resourceVersion" : "metadata.uid"));
}

static bool is_variable(struct str name)
{
    return str_eqc(name, "ns") || str_has_prefix(name, STR("rv:")) ||
           str_has_prefix(name, STR("uid:"));
}

static struct str fill(struct run *r, struct str text)
{
    struct buf out = BUF_INIT(0);
    struct str result;

    for (size_t i = 0; i < text.n; i++) {
        struct str rest = str_from(text, i + 1);
        size_t end = text.p[i] == '{' ? str_find(rest, '}') : rest.n;

        if (text.p[i] == '{' && end < rest.n && is_variable(str_sub(rest, 0, end))) {
            fill_one(r, &out, str_sub(rest, 0, end));
            i += end + 1;
        } else {
            buf_char(&out, text.p[i]);
        }
    }
    result = arena_str(r->t->arena, buf_str(&out));
    buf_fini(&out);
    return result;
}

/* ---- blanking ---- */

static bool is_blank_key(const char *key)
{
    static const char *const keys[] = {"uid", "resourceVersion", "creationTimestamp",
                                       "deletionTimestamp", "time"};

    for (size_t i = 0; key && i < COUNT(keys); i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool hex_run(struct str s, size_t at, size_t n)
{
    for (size_t i = at; i < at + n; i++)
        if (i >= s.n || !strchr("0123456789abcdef", s.p[i]))
            return false;
    return true;
}

static bool uuid_at(struct str s, size_t i)
{
    return hex_run(s, i, 8) && hex_run(s, i + 9, 4) && hex_run(s, i + 14, 4) &&
           hex_run(s, i + 19, 4) && hex_run(s, i + 24, 12) && s.p[i + 8] == '-' &&
           s.p[i + 13] == '-' && s.p[i + 18] == '-' && s.p[i + 23] == '-';
}

static struct str blank_text(struct arena *a, struct str s, const char *key)
{
    struct buf out = BUF_INIT(0);
    struct str result;

    if (is_blank_key(key) && s.n)
        return STR("*");
    for (size_t i = 0; i < s.n; i++) {
        if (uuid_at(s, i)) {
            buf_char(&out, '*');
            i += 35;
        } else if (str_has_prefix(str_from(s, i), STR("in record ("))) {
            buf_addc(&out, "in record (*");
            i += sizeof("in record (") - 1;
            while (i + 1 < s.n && s.p[i + 1] != ')')
                i++;
        } else {
            buf_char(&out, s.p[i]);
        }
    }
    result = arena_str(a, buf_str(&out));
    buf_fini(&out);
    return result;
}

static void blank(struct arena *a, cJSON *node, const char *key)
{
    struct str prefix = json_str(json_get(node, "generateName"));

    json_remove(json_get(node, "metadata"), "managedFields");
    if (prefix.n && str_has_prefix(json_str(json_get(node, "name")), str_sub(prefix, 0, 58)))
        json_set_str(a, node, "name", STR("*"));
    if (json_is_string(node)) {
        struct str s = blank_text(a, json_str(node), key);

        node->valuestring = arena_cstr(a, s);
        node->valueint = (int)s.n;
    }
    json_each(child, node)
    {
        blank(a, child, json_is_object(node) ? child->string : NULL);
    }
}

/* ---- comparing ---- */

static struct str ns_to_name(struct run *r, struct str text)
{
    struct buf out = BUF_INIT(0);
    struct str name = STR(NS), result;

    for (size_t i = 0; i < text.n; i++) {
        if (str_has_prefix(str_from(text, i), name)) {
            buf_addc(&out, "{ns}");
            i += name.n - 1;
        } else {
            buf_char(&out, text.p[i]);
        }
    }
    result = arena_str(r->t->arena, buf_str(&out));
    buf_fini(&out);
    return result;
}

static cJSON *clean_answer(struct run *r, struct answer *got)
{
    struct arena *a = r->t->arena;
    cJSON *tree;

    if (json_parse(a, ns_to_name(r, got->body), &tree, NULL))
        return json_new_string(a, got->body);
    blank(a, tree, NULL);
    return tree;
}

static size_t count_warnings(struct str lines)
{
    size_t n = 0;

    while (lines.p)
        n += str_has_prefix(str_cut(&lines, '\n'), STR("warning: "));
    return n;
}

static void compare(struct run *r, size_t at, const cJSON *step, struct answer *got)
{
    struct arena *a = r->t->arena;
    const char *why = known_difference(r->t->name, at);
    const cJSON *want = json_get(step, "answer");
    cJSON *mine = clean_answer(r, got);
    bool same = json_equal(mine, want) && json_i64_at(step, "code", 0) == got->status;

    json_each(w, json_get(step, "warnings"))
    {
        struct str line = arena_printf(a, "warning: %.*s\r\n", STR_F(json_str(w)));

        same &= str_contains(blank_text(a, got->headers, NULL), line);
    }
    same &= count_warnings(got->headers) == json_count(json_get(step, "warnings"));
    if (same == !why)
        return;
    r->t->failures++;
    print_error("%s/%zu: %s\n %s %s %s\n got  %d %s\n want %d %s %s\n", r->t->name, at,
                why ? "does not differ any more" : "differs", json_str_at(step, "method").p,
                json_str_at(step, "path").p, str_sub(json_str_at(step, "body"), 0, 300).p,
                got->status, json_text(a, mine).p, (int)json_i64_at(step, "code", 0),
                json_text(a, want).p, json_text(a, json_get(step, "warnings")).p);
}

static void run_case(struct tested *t)
{
    struct run r = {.h = harness_new(), .t = t};

    json_each(step, json_get(t->json, "steps"))
    {
        struct str body = json_str(json_get(step, "body"));
        struct answer a;

        if (body.p)
            body = fill(&r, body);
        a = ask(r.h, json_str_at(step, "method").p, fill(&r, json_str_at(step, "path")).p,
                json_str_at(step, "type").p, body, NULL);
        compare(&r, r.n, step, &a);
        r.seen[r.n++] = a;
    }
    harness_free(r.h);
}

static void test_recorded(void **state)
{
    (void)state;
    run_cases("api.jsonl", 30, run_case);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
