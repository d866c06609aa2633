/* SPDX-License-Identifier: Apache-2.0 */
/* Files of one volume that hide one another, reported in Warning headers in upstream's words. It
 * must never refuse anything, nor compare more than a few hundred paths: upstream compares each
 * with each. Source: warningsForOverlappingVirtualPaths in pkg/api/pod/warnings.go. */
#include "parts.h"

#include <sublet/encode.h>

#define MAX_PATHS 256

struct file {
    struct str path, source; /* source: what it comes from, when there are several */
};

/* The paths met so far in one volume. */
struct paths {
    struct arena *arena;
    void (*warn)(void *ctx, struct str text);
    void *ctx;
    struct str volume;
    const char *what; /* ConfigMap "x", Projected */
    struct file *files;
    size_t n;
};

static struct str file_text(struct arena *a, struct file f)
{
    struct str path = go_quote(a, f.path);

    return f.source.n ? arena_printf(a, "%.*s (%.*s)", STR_F(path), STR_F(f.source)) : path;
}

/* Whether outer is inner or a folder above it. */
static bool contains(struct str outer, struct str inner)
{
    return str_has_prefix(inner, outer) && (inner.n == outer.n || inner.p[outer.n] == '/');
}

static void tell_overlap(const struct paths *p, struct file now, struct file before)
{
    struct arena *a = p->arena;

    p->warn(p->ctx, arena_printf(a, "volume %.*s (%s): overlapping paths: %.*s with %.*s",
                                 STR_F(go_quote(a, p->volume)), p->what, STR_F(file_text(a, now)),
                                 STR_F(file_text(a, before))));
}

static void add_path(struct paths *p, struct str path, struct str source)
{
    struct file now = {path, source};

    while (now.path.n && now.path.p[now.path.n - 1] == '/')
        now.path.n--;
    for (size_t i = 0; now.path.n && i < p->n; i++) {
        struct file before = p->files[i];

        if (before.path.n && (contains(before.path, now.path) || contains(now.path, before.path)))
            tell_overlap(p, now, before);
    }
    if (p->n < MAX_PATHS)
        p->files[p->n++] = now;
}

static void add_items(struct paths *p, const cJSON *items, struct str source)
{
    json_each(item, items) add_path(p, json_str(json_get(item, "path")), source);
}

/* ---- projected volumes ---- */

static struct str named(struct arena *a, const char *what, const cJSON *source)
{
    return arena_printf(a, "%s %.*s", what, STR_F(go_quote(a, json_str(json_get(source, "name")))));
}

static void add_projection(struct paths *p, const cJSON *one)
{
    const cJSON *map = json_get(one, "configMap"), *secret = json_get(one, "secret");
    const cJSON *files = json_get(one, "downwardAPI"),
                *token = json_get(one, "serviceAccountToken");

    if (!json_count(one))
        p->warn(p->ctx, arena_printf(p->arena, "volume %.*s (Projected) has no sources provided",
                                     STR_F(go_quote(p->arena, p->volume))));
    else if (json_count(json_get(map, "items")))
        add_items(p, json_get(map, "items"), named(p->arena, "ConfigMap", map));
    else if (json_count(json_get(secret, "items")))
        add_items(p, json_get(secret, "items"), named(p->arena, "Secret", secret));
    else if (json_count(json_get(files, "items")))
        add_items(p, json_get(files, "items"), STR("DownwardAPI"));
    else if (token)
        add_path(p, json_str(json_get(token, "path")), STR("ServiceAccountToken"));
}

/* ---- volumes ---- */

static void warn_items(struct paths *p, const char *what, const cJSON *source)
{
    p->what = what;
    p->n = 0;
    add_items(p, json_get(source, "items"), STR(""));
}

WARNS(warn_volume_paths)
{
    struct paths p = {.arena = a, .warn = warn, .ctx = ctx};

    p.files = arena_alloc(a, MAX_PATHS * sizeof(*p.files));
    json_each(volume, json_get(object, "volumes"))
    {
        const cJSON *map = json_get(volume, "configMap"), *secret = json_get(volume, "secret");

        p.volume = json_str(json_get(volume, "name"));
        if (json_count(json_get(map, "items")))
            warn_items(&p, named(a, "ConfigMap", map).p, map);
        if (json_count(json_get(secret, "items")))
            warn_items(&p,
                       arena_printf(a, "Secret %.*s",
                                    STR_F(go_quote(a, json_str(json_get(secret, "secretName")))))
                           .p,
                       secret);
        warn_items(&p, "DownwardAPI", json_get(volume, "downwardAPI"));
        p.what = "Projected";
        p.n = 0;
        json_each(one, json_path(volume, "projected.sources")) add_projection(&p, one);
    }
}
