/* SPDX-License-Identifier: Apache-2.0 */
/* Ingresses. Why: all tenants of a host share its ingress controllers, so a host name is the fence:
 * who may name one takes its traffic. Only names of the admin's list go down, and only classes of
 * the admin's list. Must never send a rule for every host, nor an annotation that chooses a
 * class. */

#include "kind_impl.h"

#define LEGACY_CLASS "kubernetes.io/ingress.class"

static const struct config_to_host *options(const struct kind_call *c)
{
    return c->tenant->config->to_host;
}

static int check_spec(const struct kind_call *c, const cJSON *spec, cJSON **ret)
{
    const cJSON *notes = json_path(c->object, "metadata.annotations");

    (void)ret;
    if (json_get(notes, LEGACY_CLASS) && !json_str(json_get(spec, "ingressClassName")).n)
        return translate_kind_refuse(c, "ingressClassName: the annotation " LEGACY_CLASS
                                        " chooses no class here; set spec.ingressClassName");
    return 0;
}

int translate_kind_ingress_class(const struct kind_call *c, struct str class)
{
    if (str_list_has(options(c)->ingress_classes, class))
        return 0;
    return translate_kind_refuse(c, "class \"%.*s\" is not one of sync.toHost.ingresses.classes",
                                 STR_F(class));
}

static int class_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str class = json_str(value);

    if (class.n && translate_kind_ingress_class(c, class))
        return -1;
    *ret = class.n ? json_new_string(c->arena, class) : NULL;
    return 0;
}

int translate_kind_host(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    struct str host = json_str(value);

    if (!config_host_listed(options(c)->ingress_hosts, host))
        return translate_kind_refuse(c, "host \"%.*s\" is not one of sync.toHost.ingresses.hosts",
                                     STR_F(host));
    *ret = json_new_string(c->arena, host);
    return 0;
}

static int check_rule(const struct kind_call *c, const cJSON *rule, cJSON **ret)
{
    (void)ret;
    if (json_str(json_get(rule, "host")).n)
        return 0;
    return translate_kind_refuse(c, "a rule without a host would take the traffic of every host");
}

/* Upstream it is for the controller's wildcard host; some offer its certificate for every name. */
static int check_tls(const struct kind_call *c, const cJSON *tls, cJSON **ret)
{
    (void)ret;
    return json_count(json_get(tls, "hosts"))
               ? 0
               : translate_kind_refuse(c, "TLS without hosts would be for every host");
}

/* Controllers paste it into their configuration. */
static int path_down(const struct kind_call *c, const cJSON *value, cJSON **ret)
{
    static const char refused[] = "{};\"'`\\$<>^|";
    struct str path = json_str(value);

    for (size_t i = 0; i < path.n; i++) {
        unsigned char byte = (unsigned char)path.p[i];

        for (size_t k = 0; k < sizeof(refused) - 1; k++)
            if (byte <= ' ' || byte == 127 || byte == (unsigned char)refused[k])
                return translate_kind_refuse(
                    c,
                    "a path must not contain blanks, control characters or any "
                    "of %s",
                    refused);
    }
    *ret = json_new_string(c->arena, path);
    return 0;
}

#define PATHS "spec.rules[*].http.paths[*]."
static const struct kind_rule DOWN[] = {
    {"spec", KIND_CHECK, .call = check_spec},
    {"spec.ingressClassName", KIND_CALL, .call = class_down},
    {"spec.defaultBackend", KIND_REFUSE, .what = "would take the traffic of every host"},
    {"spec.rules[*]", KIND_CHECK, .call = check_rule},
    {"spec.rules[*].host", KIND_CALL, .call = translate_kind_host},
    {PATHS "path", KIND_CALL, .call = path_down},
    {PATHS "pathType", KIND_KEEP},
    {PATHS "backend.service.name", KIND_REFERENCE, .what = "Service"},
    {PATHS "backend.service.port.name", KIND_KEEP},
    {PATHS "backend.service.port.number", KIND_KEEP},
    {PATHS "backend.resource", KIND_REFUSE, .what = "only Services go down as backends"},
    {"spec.tls[*]", KIND_CHECK, .call = check_tls},
    {"spec.tls[*].hosts[*]", KIND_CALL, .call = translate_kind_host},
    {"spec.tls[*].secretName", KIND_REFERENCE, .what = "Secret"},
    {0},
};

static const struct kind_rule UP[] = {
    {"status.loadBalancer.ingress[*].ip", KIND_KEEP},
    {"status.loadBalancer.ingress[*].hostname", KIND_KEEP},
    {"status.loadBalancer.ingress[*].ports[*].port", KIND_KEEP},
    {"status.loadBalancer.ingress[*].ports[*].protocol", KIND_KEEP},
    {"status.loadBalancer.ingress[*].ports[*].error", KIND_KEEP},
    {0},
};

/* The host's default class is not the tenant's to have. */
static void settle_class(const struct kind_call *c, cJSON *host)
{
    cJSON *spec = json_ensure_object(c->arena, host, "spec");

    if (!json_get(spec, "ingressClassName"))
        add_str(c->arena, spec, "ingressClassName", options(c)->ingress_classes.items[0]);
}

const struct kind_rules TRANSLATE_RULES_INGRESS = {.api_version = "networking.k8s.io/v1",
                                                   .kind = "Ingress",
                                                   .group = "networking.k8s.io",
                                                   .plural = "ingresses",
                                                   .patched = 1 + DOWN_INGRESSES,
                                                   .down = DOWN,
                                                   .up = UP,
                                                   .hidden = LEGACY_CLASS,
                                                   .annotations = translate_kind_notes,
                                                   .host = translate_kind_host,
                                                   .finish = settle_class};
