/* SPDX-License-Identifier: Apache-2.0 */
/* Annotations that said before what fields say now: what has become of them is reported in
 * warnings, and the AppArmor profile of a container, which is obeyed still, is put where it
 * belongs. Must never change a field that is set. Source: pkg/registry/core/pod/strategy.go
 * (applyAppArmorVersionSkew), pkg/api/pod/warnings.go. */
#include "parts.h"

#define APPARMOR          "container.apparmor.security.beta.kubernetes.io/"
#define SECCOMP           "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER "container.seccomp.security.alpha.kubernetes.io/"
#define LOCALHOST         "localhost/"
#define MAX_PROFILE       4095

static struct str key_of(struct arena *a, const char *prefix, const cJSON *container)
{
    return arena_concat(a, 2, (struct str[]){str_c(prefix), json_str_at(container, "name")});
}

/* ---- AppArmor ---- */

/* The profile an annotation stands for; NULL when it is none. */
static cJSON *profile_of(struct arena *a, struct str text)
{
    struct str file = str_from(text, sizeof(LOCALHOST) - 1);
    cJSON *profile = json_new_object(a);

    if (str_eqc(text, "unconfined")) {
        json_set_str(a, profile, "type", STR("Unconfined"));
    } else if (str_eqc(text, "runtime/default")) {
        json_set_str(a, profile, "type", STR("RuntimeDefault"));
    } else if (str_has_prefix(text, STR(LOCALHOST)) && file.n) {
        json_set_str(a, profile, "localhostProfile", file);
        json_set_str(a, profile, "type", STR("Localhost"));
    } else {
        return NULL;
    }
    return profile;
}

static bool is_valid(const cJSON *profile)
{
    struct str file = json_str_at(profile, "localhostProfile");

    return profile && file.n <= MAX_PROFILE && str_eq(str_trim(file), file);
}

static const cJSON *pod_profile(const cJSON *spec)
{
    return json_path(spec, "securityContext.appArmorProfile");
}

/* An annotation about this container without a field of its own. */
static const cJSON *lone_annotation(struct arena *a, const cJSON *annotations,
                                    const cJSON *container)
{
    if (json_path(container, "securityContext.appArmorProfile"))
        return NULL;
    return json_get_str(annotations, key_of(a, APPARMOR, container));
}

static const char *const LISTS[] = {"initContainers", "containers", "ephemeralContainers"};
#define each_container(container, spec)                                                            \
    for (size_t list_ = 0; list_ < COUNT(LISTS); list_++)                                          \
    json_each(container, json_get(spec, LISTS[list_]))

static bool is_windows(const cJSON *spec)
{
    return str_eqc(json_str_at(spec, "os.name"), "windows");
}

void kinds_pod_sync_app_armor(struct arena *a, cJSON *pod)
{
    cJSON *spec = json_get(pod, "spec");
    const cJSON *annotations = json_path(pod, "metadata.annotations");

    if (!json_count(annotations) || is_windows(spec))
        return;
    each_container(container, spec)
    {
        const cJSON *annotation = lone_annotation(a, annotations, container);
        cJSON *profile = annotation ? profile_of(a, json_str(annotation)) : NULL;

        if (is_valid(profile) && !json_equal(profile, pod_profile(spec)))
            json_set(a, json_ensure_object(a, container, "securityContext"), "appArmorProfile",
                     profile);
    }
}

static void warn_app_armor(const struct warner *w, const struct field_path *p,
                           const cJSON *annotations, const cJSON *spec, bool skip_invalid)
{
    each_container(container, spec)
    {
        const cJSON *annotation = lone_annotation(w->arena, annotations, container);
        cJSON *profile = annotation ? profile_of(w->arena, json_str(annotation)) : NULL;

        if (!annotation || (json_equal(profile, pod_profile(spec)) && profile &&
                            (skip_invalid || is_valid(profile))))
            continue;
        warn_at(w, FIELD_KEY(p, key_of(w->arena, APPARMOR, container)),
                "deprecated since v1.30; use the \"appArmorProfile\" field instead");
    }
}

/* Before prepare_pod_create, which removes what was there. */
WARNS(warn_pod_app_armor)
{
    const cJSON *spec = json_get(object, "spec");
    AT(p, NULL, "metadata.annotations");
    WARNER(w);

    if (!is_windows(spec))
        warn_app_armor(&w, p, json_path(object, "metadata.annotations"), spec, false);
}

/* ---- what has no effect any more ---- */

static const struct {
    const char *key, *text;
} DEAD[] = {
    {"scheduler.alpha.kubernetes.io/critical-pod",
     "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
    {"security.alpha.kubernetes.io/sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"},
    {"security.alpha.kubernetes.io/unsafe-sysctls",
     "non-functional in v1.11+; use the \"sysctls\" field instead"},
};

static void warn_seccomp(const struct warner *w, const struct field_path *p,
                         const cJSON *annotations, const cJSON *spec)
{
    static const char text[] = "non-functional in v1.27+; use the \"seccompProfile\" field instead";

    if (!json_path(spec, "securityContext.seccompProfile") && json_get(annotations, SECCOMP))
        warn_at(w, FIELD_KEY(p, STR(SECCOMP)), text);
    each_container(container, spec)
    {
        struct str key = key_of(w->arena, SECCOMP_CONTAINER, container);

        if (!json_path(container, "securityContext.seccompProfile") &&
            json_get_str(annotations, key))
            warn_at(w, FIELD_KEY(p, key), text);
    }
}

void warn_pod_annotations(const struct warner *w, const struct field_path *p, const cJSON *template)
{
    const cJSON *annotations = json_path(template, "metadata.annotations");
    const cJSON *spec = json_get(template, "spec");
    AT(at, p, "metadata.annotations");

    if (!json_count(annotations))
        return;
    for (size_t i = 0; i < COUNT(DEAD); i++)
        if (json_get(annotations, DEAD[i].key))
            warn_at(w, FIELD_KEY(at, str_c(DEAD[i].key)), DEAD[i].text);
    warn_seccomp(w, at, annotations, spec);
    if (p)
        warn_app_armor(w, at, annotations, spec, true);
}
