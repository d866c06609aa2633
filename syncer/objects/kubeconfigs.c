/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig of this virtual cluster's admin in Secrets of the host: `<name>-kubeconfig`, under
 * key `value`, where Cluster API, Flux and Argo CD look for it, and under the keys of vCluster's
 * Secret, beside its parts; and those of `kubeconfig.additionalSecrets`, which may be in other
 * namespaces. Must never write into a Secret there that was not made for it. */

#include <sublet/config_kubeconfig.h>
#include <sublet/encode.h>

#include "core/leader.h"
#include "objects/objects.h"

struct kubeconfig_secret {
    struct publication what; /* with a duty of its own: a failure ends with its own success */
    struct publisher *publisher;
    struct str text; /* heap */
};

struct kubeconfigs {
    size_t n; /* the first is `<name>-kubeconfig` */
    struct kubeconfig_secret items[1 + CONFIG_MOST_KUBECONFIGS];
};

/* The base64 behind a key of the kubeconfig that pki_kubeconfig() wrote, as Secrets have it too. */
static struct str part_of(struct str kubeconfig, struct str key)
{
    while (kubeconfig.p) {
        struct str line = str_trim(str_cut(&kubeconfig, '\n'));

        if (str_has_prefix(line, key))
            return str_trim(str_from(line, key.n));
    }
    return STR_NULL;
}

static cJSON *kubeconfig_data(void *ctx, struct arena *a, const cJSON *existing)
{
    static const struct {
        const char *key, *from;
    } parts[] = {
        {"certificate-authority", "certificate-authority-data:"},
        {"client-certificate", "client-certificate-data:"},
        {"client-key", "client-key-data:"},
    };
    struct str kubeconfig = ((struct kubeconfig_secret *)ctx)->text;
    struct str whole = base64_encode(a, kubeconfig);
    cJSON *data = json_new_object(a);

    (void)existing;
    json_set_str(a, data, "value", whole);
    json_set_str(a, data, "config", whole);
    for (size_t i = 0; i < COUNT(parts); i++) {
        struct str part = part_of(kubeconfig, str_c(parts[i].from));

        if (part.n)
            json_set_str(a, data, parts[i].key, part);
    }
    return data;
}

#define OF_A_KUBECONFIG                                                                            \
    .id = SYNC_SECRETS, .kind = "Secret", .data = kubeconfig_data,                                 \
    .failed = "KubeconfigNotPublished", .foreign = "KubeconfigSecretExists"

static const struct publication KUBECONFIG = {
    OF_A_KUBECONFIG, .duty = "kubeconfig",
    .failed_message =
        "the Secret with this virtual cluster's kubeconfig cannot be written on the host cluster",
    .foreign_message = "the Secret for this virtual cluster's kubeconfig exists on the host "
                       "cluster and is not this virtual cluster's"};

/* The names of the Secrets and their namespaces are the operator's: a tenant is not shown them. */
static const struct publication MORE = {
    OF_A_KUBECONFIG, .whole = true, .mark = "sublet.dev/kubeconfig",
    .failed_message = "a further Secret with this virtual cluster's kubeconfig cannot be written "
                      "on the host cluster",
    .foreign_message = "a further Secret for this virtual cluster's kubeconfig exists on the host "
                       "cluster and is not made for it"};

struct kubeconfigs *sync_kubeconfigs_new(struct syncer *s)
{
    struct arena *a = arena_new(0);
    struct kubeconfigs *k = NEW(struct kubeconfigs);
    struct str name = arena_printf(a, "%.*s-kubeconfig", STR_F(s->config->name));

    k->items[0].what = KUBECONFIG;
    k->items[0].publisher = sync_publisher_new(s, &k->items[0].what, STR(""), name, &k->items[0]);
    for (size_t i = 0; i < s->config->n_kubeconfigs; i++) {
        const struct config_kubeconfig *config = &s->config->kubeconfigs[i];
        struct kubeconfig_secret *one = &k->items[1 + i];

        one->what = MORE;
        one->what.duty = arena_printf(s->arena, "kubeconfig.additionalSecrets[%zu]", i).p;
        one->publisher = sync_publisher_new(s, &one->what, config->ns, config->name, one);
    }
    k->n = 1 + s->config->n_kubeconfigs;
    arena_free(a);
    return k;
}

static void publish(struct kubeconfig_secret *one, struct str text)
{
    mem_free(one->text.p);
    one->text = mem_str(text);
    sync_publisher_want(one->publisher);
}

void syncer_publish_kubeconfig(struct syncer *s, struct str kubeconfig)
{
    publish(&s->kubeconfigs->items[0], kubeconfig);
}

void syncer_publish_kubeconfig_more(struct syncer *s, size_t i, struct str kubeconfig)
{
    publish(&s->kubeconfigs->items[1 + i], kubeconfig);
}

void sync_kubeconfigs_renew(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_renew(k->items[i].publisher);
}

void sync_kubeconfigs_kick(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_kick(k->items[i].publisher);
}

void sync_kubeconfigs_close(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        sync_publisher_close(k->items[i].publisher);
}

struct kubeconfigs *sync_kubeconfigs_free(struct kubeconfigs *k)
{
    for (size_t i = 0; i < k->n; i++)
        mem_free(k->items[i].text.p);
    mem_free(k);
    return NULL;
}
