/* SPDX-License-Identifier: Apache-2.0 */
/* Names of host objects. Why: all of a tenant's objects share one host namespace, so a name must be
 * unique over (tenant, namespace, name), fit every kind and stay readable. Must never join parts
 * without their lengths: "a-b"/"c" and "a"/"b-c" are different objects. */

#include <string.h>

#include <sublet/encode.h>
#include <sublet/translate_alias.h>

#include "impl.h"

void translate_hash(size_t n, const struct str *parts, char out[HASH_CHARS + 1])
{
    unsigned char digest[32];

    sha256_parts(n, parts, digest);
    base32_lower(digest, sizeof digest, out, HASH_CHARS);
    out[HASH_CHARS] = 0;
}

/* A character of a DNS label; what cannot stand there becomes a dash. */
static char label_char(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '-';
}

/* The readable part, at most NAME_CUT characters, beginning and ending with a letter or digit. */
static size_t readable(struct str name, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < name.n && n < NAME_CUT; i++) {
        char c = label_char(name.p[i]);

        if (n || c != '-')
            out[n++] = c;
    }
    while (n && out[n - 1] == '-')
        n--;
    if (n == 0)
        out[n++] = 'x';
    return n;
}

static void with_hash(struct str name, size_t n, const struct str *parts, char out[64])
{
    size_t at = readable(name, out);

    out[at++] = '-';
    translate_hash(n, parts, out + at);
}

void translate_name(const struct translate_tenant *t, struct str ns, struct str name, char out[64])
{
    struct str parts[] = {t->cluster_uid, ns, name};

    with_hash(name, 3, parts, out);
}

void translate_token_secret_name(const struct translate_tenant *t, struct str ns,
                                 struct str pod_name, char out[64])
{
    struct str parts[] = {t->cluster_uid, ns, pod_name, STR("token")};

    with_hash(pod_name, 4, parts, out);
}

void translate_denied_name(const struct translate_tenant *t, struct str ns, struct str name,
                           char out[64])
{
    struct str parts[] = {t->cluster_uid, ns, name, STR("denied")};

    with_hash(STR("not-permitted"), 4, parts, out);
}

bool translate_marks(const struct translate_tenant *t, const cJSON *meta, struct str *ret_ns,
                     struct str *ret_name, struct str *ret_uid)
{
    const cJSON *labels = json_get(meta, "labels"), *notes = json_get(meta, "annotations");

    *ret_ns = json_str(json_get(notes, ANNOTATION_NS));
    *ret_name = json_str(json_get(notes, ANNOTATION_NAME));
    *ret_uid = json_str(json_get(notes, ANNOTATION_UID));
    if (!t->cluster_uid.n || !str_eq(json_str(json_get(labels, LABEL_CLUSTER)), t->cluster_uid))
        return false;
    /* What has no namespace in the virtual cluster has none on the host. */
    if (!str_eq(json_str(json_get(meta, "namespace")), ret_ns->n ? t->host_namespace : STR("")) ||
        !ret_name->n || !ret_uid->n)
        return false;
    return str_eq(json_str(json_get(labels, LABEL_NAMESPACE)), *ret_ns);
}

bool translate_owner(const struct translate_tenant *t, const cJSON *host_object, struct str *ret_ns,
                     struct str *ret_name, struct str *ret_uid)
{
    const cJSON *meta = json_get(host_object, "metadata");
    struct str host_name = json_str(json_get(meta, "name")), ns, name, uid;
    char expect[64], token[64];

    if (!translate_marks(t, meta, &ns, &name, &uid))
        return false;

    /* A copy of one of our objects carries our marks under another name. */
    translate_name(t, ns, name, expect);
    translate_token_secret_name(t, ns, name, token);
    if (!str_eqc(host_name, expect) && !str_eqc(host_name, token))
        return false;
    *ret_ns = ns;
    *ret_name = name;
    *ret_uid = uid;
    return true;
}

/* The name is part of the marks, since a copy has another one. */
bool translate_alias_owner(const struct translate_tenant *t, const cJSON *host_service,
                           struct str *ret_ns, struct str *ret_name, struct str *ret_uid)
{
    const cJSON *meta = json_get(host_service, "metadata");
    struct str alias = json_str(json_get(json_get(meta, "annotations"), ANNOTATION_ALIAS));
    struct str ns, name, uid;

    if (!alias.n || !str_eq(alias, json_str(json_get(meta, "name"))) ||
        !translate_marks(t, meta, &ns, &name, &uid))
        return false;
    *ret_ns = ns;
    *ret_name = name;
    *ret_uid = uid;
    return true;
}
