/* SPDX-License-Identifier: Apache-2.0 */
/* The references of a pod: the objects it needs on the host before it can start, and its tokens.
 * Why: the syncer brings down only what is used. Must name exactly what translate_pod translates,
 * else a pod waits for something that never comes. */

#include <string.h>

#include "shape.h"

struct refs {
    translate_ref_cb each;
    void *ctx;
};

static void report(const struct refs *r, enum translate_ref_kind kind, const cJSON *from,
                   const char *key)
{
    struct str name = json_str(json_get(from, key));

    if (name.n)
        r->each(r->ctx, kind, name, json_true(json_get(from, "optional")));
}

static void container_refs(const struct refs *r, const cJSON *container)
{
    json_each(from, json_get(container, "envFrom"))
    {
        report(r, REF_CONFIG_MAP, json_get(from, "configMapRef"), "name");
        report(r, REF_SECRET, json_get(from, "secretRef"), "name");
    }
    json_each(env, json_get(container, "env"))
    {
        const cJSON *value = json_get(env, "valueFrom");

        report(r, REF_CONFIG_MAP, json_get(value, "configMapKeyRef"), "name");
        report(r, REF_SECRET, json_get(value, "secretKeyRef"), "name");
    }
}

static void ephemeral_ref(const struct refs *r, const cJSON *pod, const cJSON *volume)
{
    struct str pod_name = json_str_at(pod, "metadata.name");
    struct str name = json_str(json_get(volume, "name"));
    struct buf b = BUF_INIT(1024);

    if (!json_is_object(json_get(volume, "ephemeral")) || !pod_name.n || !name.n)
        return;
    buf_add(&b, pod_name);
    buf_char(&b, '-');
    buf_add(&b, name);
    if (!b.failed)
        r->each(r->ctx, REF_PVC, buf_str(&b), false);
    buf_fini(&b);
}

static void volume_refs(const struct refs *r, const cJSON *pod, const cJSON *volume)
{
    report(r, REF_CONFIG_MAP, json_get(volume, "configMap"), "name");
    report(r, REF_SECRET, json_get(volume, "secret"), "secretName");
    report(r, REF_PVC, json_get(volume, "persistentVolumeClaim"), "claimName");
    report(r, REF_SECRET, json_get(json_get(volume, "csi"), "nodePublishSecretRef"), "name");
    ephemeral_ref(r, pod, volume);
    json_each(source, json_get(json_get(volume, "projected"), "sources"))
    {
        report(r, REF_CONFIG_MAP, json_get(source, "configMap"), "name");
        report(r, REF_SECRET, json_get(source, "secret"), "name");
    }
}

void translate_pod_refs(const cJSON *pod, translate_ref_cb each, void *ctx)
{
    const cJSON *spec = json_get(pod, "spec");
    struct refs r = {each, ctx};

    report(&r, REF_SERVICE_ACCOUNT, spec, "serviceAccountName");
    for (size_t i = 0; i < 3; i++) {
        json_each(container, json_get(spec, POD_CONTAINER_LISTS[i]))
        {
            container_refs(&r, container);
        }
    }
    json_each(volume, json_get(spec, "volumes"))
    {
        volume_refs(&r, pod, volume);
    }
    json_each(entry, json_get(spec, "resourceClaims"))
    {
        struct str name = translate_pod_claim(pod, entry);

        if (name.n)
            each(ctx, REF_DEVICE_CLAIM, name, false);
    }
    /* A missing pull secret does not keep a pod from starting. */
    json_each(secret, json_get(spec, "imagePullSecrets"))
    {
        struct str name = json_str(json_get(secret, "name"));

        if (name.n)
            each(ctx, REF_SECRET, name, true);
    }
}

void translate_pod_tokens(struct arena *a, const cJSON *pod, translate_token_cb each, void *ctx)
{
    json_each(volume, json_path(pod, "spec.volumes"))
    {
        struct str name = json_str(json_get(volume, "name"));
        size_t index = 0;

        json_each(source, json_get(json_get(volume, "projected"), "sources"))
        {
            const cJSON *token = json_get(source, "serviceAccountToken");

            if (json_is_object(token))
                each(ctx, translate_pod_token_key(a, name, index),
                     json_str(json_get(token, "audience")),
                     json_i64_at(token, "expirationSeconds", 3600));
            index++;
        }
    }
}
