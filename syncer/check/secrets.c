/* SPDX-License-Identifier: Apache-2.0 */
/* Further Secrets with the kubeconfig: each exists, and is made for this virtual cluster. */
#include "check.h"

#include <sublet/config_kubeconfig.h>

static struct str secret_state(const struct host_check *c, const cJSON *secret)
{
    const cJSON *meta = json_get(secret, "metadata");
    struct str given = json_str(json_get(json_get(meta, "annotations"), "sublet.dev/kubeconfig"));
    struct str made = json_str(json_get(json_get(meta, "labels"), "app.kubernetes.io/instance"));
    struct str by = json_str(json_get(json_get(meta, "labels"), "app.kubernetes.io/managed-by"));

    if (!str_eq(given, c->config->name) &&
        !(str_eqc(by, "sublet") && str_eq(made, c->config->name)))
        return STR_NULL;
    return json_count(json_get(secret, "data")) ? STR("exists, and holds a kubeconfig")
                                                : STR("exists, and is to be filled in");
}

static void on_secret(void *ctx, const struct host_answer *answer, const struct err *err)
{
    struct host_check *c = ctx;
    const struct config_kubeconfig *one = &c->config->kubeconfigs[c->secret++];
    bool here = !one->ns.n || str_eq(one->ns, c->config->host_namespace);
    const char *what = arena_printf(c->arena, "secret %.*s", STR_F(one->name)).p;
    cJSON *secret = host_check_body(c, answer);
    struct str state = secret && !err ? secret_state(c, secret) : STR_NULL;

    if (state.p)
        host_check_report(c, HOST_FINDING_OK, what, state);
    else if (err && err->kind == &ERR_NOT_FOUND)
        host_check_report(
            c, here ? HOST_FINDING_OK : HOST_FINDING_WARNING, what,
            here ? STR("does not exist yet: the virtual cluster makes it")
                 : STR("does not exist: the chart makes it, and no kubeconfig is there "
                       "without it"));
    else if (err && err->kind == &ERR_FORBIDDEN)
        host_check_report(c, HOST_FINDING_WARNING, what,
                          STR("may not be read with these credentials: not checked"));
    else if (err)
        host_check_report(c, HOST_FINDING_WARNING, what,
                          arena_printf(c->arena, "not checked: %.*s", STR_F(err->message)));
    else
        host_check_report(
            c, HOST_FINDING_WARNING, what,
            arena_printf(c->arena,
                         "is not made for this virtual cluster, and never written: annotation "
                         "sublet.dev/kubeconfig: %.*s gives it",
                         STR_F(c->config->name)));
    host_check_next(c);
}

void host_check_secret(struct host_check *c)
{
    const struct config_kubeconfig *one = &c->config->kubeconfigs[c->secret];

    host_check_send(c, "GET",
                    arena_printf(c->arena, "/api/v1/namespaces/%.*s/secrets/%.*s",
                                 STR_F(one->ns.n ? one->ns : c->config->host_namespace),
                                 STR_F(one->name)),
                    STR_NULL, on_secret);
}
