/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images: which one the host pulls for that of a pod. Why: hosts reach their registries
 * through mirrors, by image or by all that a prefix begins. Must never be read as a fence: a tenant
 * that spells a registry otherwise gets what it spells. */

#include "shape.h"

/* Has the name a registry before its first slash? By the rule of container runtimes. */
static bool has_registry(struct str name)
{
    struct str first = str_sub(name, 0, str_find(name, '/'));

    return first.n < name.n && (str_find(first, '.') < first.n || str_find(first, ':') < first.n ||
                                str_eqc(first, "localhost"));
}

/* With its registry, in lower case: nginx and docker.io/nginx are docker.io/library/nginx, team/app
 * is docker.io/team/app. */
static struct str in_full(struct arena *a, struct str name)
{
    size_t slash = str_find(name, '/');
    struct str registry, rest;
    char *lower;

    if (!has_registry(name))
        return arena_printf(a, "docker.io/%s%.*s", slash < name.n ? "" : "library/", STR_F(name));
    lower = arena_alloc(a, slash + 1);
    for (size_t i = 0; i < slash; i++)
        lower[i] = name.p[i] >= 'A' && name.p[i] <= 'Z' ? (char)(name.p[i] - 'A' + 'a') : name.p[i];
    registry = (struct str){lower, slash};
    rest = str_from(name, slash + 1);
    if (str_eqc(registry, "index.docker.io"))
        registry = STR("docker.io");
    return arena_printf(
        a, "%.*s/%s%.*s", STR_F(registry),
        str_eqc(registry, "docker.io") && rest.n && str_find(rest, '/') == rest.n ? "library/" : "",
        STR_F(rest));
}

struct str translate_image(struct arena *a, const cJSON *map, struct str image)
{
    struct str exact, best = STR_NULL, full;
    const cJSON *found = NULL;

    if (str_has_suffix(image, STR("/")))
        return image; /* names none */
    exact = json_str(json_get_str(map, image));
    if (exact.n)
        return exact;
    full = in_full(a, image);
    json_each(member, map)
    {
        struct str prefix = json_key(member);

        if (!str_has_suffix(prefix, STR("/")))
            continue;
        prefix = in_full(a, prefix);
        if (prefix.n > best.n && prefix.n < full.n && str_has_prefix(full, prefix)) {
            best = prefix;
            found = member;
        }
    }
    return found
               ? arena_printf(a, "%.*s%.*s", STR_F(json_str(found)), STR_F(str_from(full, best.n)))
               : image;
}
