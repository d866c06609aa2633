/* SPDX-License-Identifier: Apache-2.0 */
/* /healthz, /livez, /readyz with detail per check, and /version. A check answers from what is
 * known: it must never wait for anything. */
#include <sublet/call.h>

#include <string.h>

#include "api.h"

#define TEXT STR("text/plain; charset=utf-8")

/* One line of a verbose answer. Returns false when the check failed. */
typedef bool (*check_cb)(struct vapi *api);

static bool check_ping(struct vapi *api)
{
    (void)api;
    return true;
}

/* Before it serves and once it drains, a load balancer should look elsewhere. */
static bool check_serving(struct vapi *api)
{
    return api->state == API_SERVING;
}

static const struct {
    const char *name;
    check_cb check;
    bool ready_only;
} CHECKS[] = {
    {"ping", check_ping, false},
    {"serving", check_serving, true},
};

static bool excluded(struct call *c, const char *name)
{
    struct str rest = c->request->query;

    while (rest.p) {
        struct str pair = str_cut(&rest, '&');

        if (str_has_prefix(pair, STR("exclude=")) && str_eqc(str_from(pair, 8), name))
            return true;
    }
    return false;
}

static bool report(struct call *c, struct buf *out, const char *name, const char *failure)
{
    if (excluded(c, name)) {
        buf_printf(out, "[+]%s excluded: ok\n", name);
        return true;
    }
    if (!failure)
        buf_printf(out, "[+]%s ok\n", name);
    else
        buf_printf(out, "[-]%s failed: %s\n", name, failure);
    return !failure;
}

/* only: a single check by name, or empty. */
static bool run_checks(struct call *c, bool ready, struct str only, struct buf *out, bool *found)
{
    struct vapi *api = c->api;
    bool fine = true;

    for (size_t i = 0; i < sizeof(CHECKS) / sizeof(*CHECKS); i++) {
        if (CHECKS[i].ready_only && !ready)
            continue;
        if (only.n && !str_eqc(only, CHECKS[i].name))
            continue;
        *found = true;
        fine &= report(c, out, CHECKS[i].name, CHECKS[i].check(api) ? NULL : "not serving");
    }
    for (size_t i = 0; i < api->n_checks; i++) {
        struct api_check *k = &api->checks[i];

        if (only.n && !str_eqc(only, k->name))
            continue;
        *found = true;
        fine &= report(c, out, k->name, ready ? k->check(k->ctx) : NULL);
    }
    return fine;
}

static void answer_health(struct call *c, const char *which, struct str only)
{
    struct buf out = BUF_INIT(0);
    bool found = false, verbose = str_contains(c->request->query, STR("verbose"));
    bool fine = run_checks(c, !strcmp(which, "readyz"), only, &out, &found);

    if (only.n && !found) {
        buf_fini(&out);
        call_raw(c, 404, TEXT, STR("404 page not found\n"));
        return;
    }
    buf_printf(&out, "%s check %s\n", which, fine ? "passed" : "failed");
    struct str text = fine && !verbose ? STR("ok") : arena_str(c->arena, buf_str(&out));
    buf_fini(&out);
    if (!only.n)
        call_header(c, "x-content-type-options", STR("nosniff"));
    call_header(c, "cache-control", STR("no-cache, private"));
    call_raw(c, fine ? 200 : 500, TEXT, text);
}

static void answer_version(struct call *c)
{
    struct arena *a = c->arena;
    cJSON *v = json_new_object(a);
    struct str version = str_c(c->api->version), rest = str_from(version, 1);
    struct str major = str_cut(&rest, '.'), minor = str_cut(&rest, '.');
    uint64_t number = 1;

    str_to_u64(minor, &number);
    json_set_str(a, v, "major", major);
    json_set_str(a, v, "minor", minor);
    json_set_str(a, v, "emulationMajor", major);
    json_set_str(a, v, "emulationMinor", minor);
    json_set_str(a, v, "minCompatibilityMajor", major);
    json_set_str(a, v, "minCompatibilityMinor",
                 arena_printf(a, "%llu", (unsigned long long)(number - 1)));
    json_set_str(a, v, "gitVersion", version);
    json_set_str(a, v, "gitCommit", STR(""));
    json_set_str(a, v, "gitTreeState", STR(""));
    json_set_str(a, v, "buildDate", STR("1970-01-01T00:00:00Z"));
    json_set_str(a, v, "goVersion", STR("none"));
    json_set_str(a, v, "compiler", STR("gcc"));
    json_set_str(a, v, "platform", STR("linux/amd64"));
    call_raw(c, 200, STR("application/json"), json_text(a, v));
}

bool health_handle(struct call *c, struct str path)
{
    static const char *const endpoints[] = {"healthz", "livez", "readyz"};
    struct str rest = path;

    str_cut(&rest, '/');
    if (!rest.p)
        return false;
    struct str first = str_cut(&rest, '/');
    if (str_eqc(first, "version") && !rest.n) {
        answer_version(c);
        return true;
    }
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(*endpoints); i++) {
        if (str_eqc(first, endpoints[i])) {
            answer_health(c, endpoints[i], rest.p ? rest : STR(""));
            return true;
        }
    }
    return false;
}
