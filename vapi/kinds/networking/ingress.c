/* SPDX-License-Identifier: Apache-2.0 */
/* Ingresses. Must never refuse on update what an older server accepted. Source:
 * pkg/apis/networking/validation. */
#include "../rules/kind.h"
#include "reference.h"

#include <string.h>

static void ingress_prepare_create(struct arena *a, cJSON *ingress)
{
    set_status(a, ingress, "{\"loadBalancer\":{}}");
}

#define CLASS_ANNOTATION "kubernetes.io/ingress.class"

#define WILDCARD_SUBDOMAIN                                                                         \
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "      \
    "which "                                                                                       \
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric " \
    "character (e.g. '*.example.com', regex used for validation is "                               \
    "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

/* What an update may keep, since an older server took it. */
struct leniency {
    bool secret_names, wildcard_rules;
};

static void check_host(struct field_errors *e, const struct field_path *p, struct str host)
{
    bool wild = str_find(host, '*') < host.n;

    if (!wild) {
        check_rule(e, p, NAME_DNS1123_SUBDOMAIN, host);
        return;
    }
    if (host.n > 253)
        field_invalid_str(e, p, host, "must be no more than 253 characters");
    if (!str_has_prefix(host, STR("*.")) || host.n > 255 ||
        name_check_dns1123_subdomain(str_from(host, 2)))
        field_invalid_str(e, p, host, WILDCARD_SUBDOMAIN);
}

static void check_service(struct field_errors *e, const struct field_path *p, const cJSON *service)
{
    const struct field_path *at = FIELD(p, "service"), *port_at = FIELD(at, "port");
    const cJSON *port = json_get(service, "port");
    struct str name = json_str(json_get(service, "name")),
               port_name = json_str(json_get(port, "name"));
    int64_t number = json_i64_at(port, "number", 0);

    if (check_given(e, FIELD(at, "name"), name))
        check_rule(e, FIELD(at, "name"), NAME_DNS1123_LABEL, name);
    if (port_name.n && number)
        field_invalid_str(e, p, STR(""), "cannot set both port name & port number");
    else if (port_name.n)
        check_port_name(e, FIELD(port_at, "name"), port_name);
    else if (number)
        check_port(e, FIELD(port_at, "number"), json_get(port, "number"));
    else
        field_required(e, p, "port name or number is required");
}

static void check_backend(struct field_errors *e, const struct field_path *p, const cJSON *backend)
{
    const cJSON *resource = given(backend, "resource"), *service = given(backend, "service");

    if (resource && service)
        field_invalid_str(e, p, STR(""), "cannot set both resource and service backends");
    else if (resource)
        check_typed_reference(e, FIELD(p, "resource"), resource);
    else if (service)
        check_service(e, p, service);
    else
        field_invalid_str(e, p, STR(""), "resource or service backend is required");
}

/* ---- rules ---- */

static bool contains(struct str s, const char *part)
{
    return memmem(s.p, s.n, part, strlen(part)) != NULL;
}

static void check_exact_path(struct field_errors *e, const struct field_path *p, struct str path)
{
    static const char *const inside[] = {"//", "/./", "/../", "%2f", "%2F"};
    static const char *const at_end[] = {"/..", "/."};

    if (!is_absolute(path))
        field_invalid_str(e, p, path, "must be an absolute path");
    if (!path.n)
        return;
    for (size_t i = 0; i < COUNT(inside); i++) {
        if (contains(path, inside[i]))
            field_invalid_str(e, p, path,
                              arena_printf(e->arena, "must not contain '%s'", inside[i]).p);
    }
    for (size_t i = 0; i < COUNT(at_end); i++) {
        if (str_has_suffix(path, str_c(at_end[i])))
            field_invalid_str(e, p, path,
                              arena_printf(e->arena, "cannot end with '%s'", at_end[i]).p);
    }
}

static void check_path(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    static const char *const types[] = {"Exact", "ImplementationSpecific", "Prefix", NULL};
    const cJSON *type = given(item, "pathType");
    struct str path = json_str(json_get(item, "path"));

    if (!type) {
        field_required(e, FIELD(p, "pathType"), "pathType must be specified");
        return;
    }
    if (!one_of(json_str(type), types))
        field_not_supported(e, FIELD(p, "pathType"), json_str(type), types);
    else if (!str_eqc(json_str(type), "ImplementationSpecific"))
        check_exact_path(e, FIELD(p, "path"), path);
    else if (path.n && !is_absolute(path))
        field_invalid_str(e, FIELD(p, "path"), path, "must be an absolute path");
    check_backend(e, FIELD(p, "backend"), json_get(item, "backend"));
}

static void check_rule_value(struct field_errors *e, const struct field_path *p, const cJSON *rule)
{
    const cJSON *http = given(rule, "http"), *paths = json_get(http, "paths");
    const struct field_path *at = FIELD(FIELD(p, "http"), "paths");
    size_t i = 0;

    if (!http)
        return;
    if (!json_count(paths))
        field_required(e, at, "");
    json_each(path, paths) check_path(e, FIELD_INDEX(at, i++), path);
}

static void check_rules(struct field_errors *e, const struct field_path *p, const cJSON *rules,
                        struct leniency fine)
{
    size_t i = 0;

    json_each(rule, rules)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str host = json_str(json_get(rule, "host"));

        if (is_ip(e->arena, host))
            field_invalid_str(e, FIELD(at, "host"), host, "must be a DNS name, not an IP address");
        if (host.n)
            check_host(e, FIELD(at, "host"), host);
        if (str_find(host, '*') == host.n || !fine.wildcard_rules)
            check_rule_value(e, at, rule);
    }
}

static void check_tls(struct field_errors *e, const struct field_path *p, const cJSON *list,
                      struct leniency fine)
{
    size_t i = 0;

    json_each(tls, list)
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str secret = json_str(json_get(tls, "secretName"));
        size_t k = 0;

        json_each(host, json_get(tls, "hosts"))
            check_host(e, FIELD_INDEX(FIELD(at, "hosts"), k++), json_str(host));
        if (secret.n && !fine.secret_names)
            check_rule(e, FIELD(at, "secretName"), NAME_DNS1123_SUBDOMAIN, secret);
    }
}

/* ---- Ingress ---- */

static struct leniency leniency_of(struct arena *a, const cJSON *old)
{
    struct leniency ret = {false, false};

    json_each(tls, json_path(old, "spec.tls"))
    {
        struct str secret = json_str(json_get(tls, "secretName"));

        ret.secret_names |= secret.n && name_check_dns1123_subdomain(secret);
    }
    json_each(rule, json_path(old, "spec.rules"))
    {
        struct str host = json_str(json_get(rule, "host"));
        struct field_errors found;

        field_errors_init(&found, a);
        if (str_find(host, '*') < host.n)
            check_rule_value(&found, NULL, rule);
        ret.wildcard_rules |= found.n > 0;
    }
    return ret;
}

static void check_class_annotation(struct field_errors *e, const cJSON *ingress)
{
    const cJSON *annotation =
        json_get(json_path(ingress, "metadata.annotations"), CLASS_ANNOTATION);
    const cJSON *name = given(ingress, "spec.ingressClassName");

    if (annotation && name && !json_equal(annotation, name))
        field_invalid(e, FIELD(FIELD(NULL, "annotations"), CLASS_ANNOTATION), annotation,
                      "must match `ingressClassName` when both are specified");
}

static void validate_ingress(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const cJSON *spec = json_get(object, "spec"), *rules = json_get(spec, "rules");
    const cJSON *backend = given(spec, "defaultBackend"), *class = given(spec, "ingressClassName");
    struct leniency fine = leniency_of(e->arena, old);
    AT(p, NULL, "spec");

    if (!json_count(rules) && !backend)
        field_invalid(e, p, rules, "either `defaultBackend` or `rules` must be specified");
    if (backend)
        check_backend(e, FIELD(p, "defaultBackend"), backend);
    check_rules(e, FIELD(p, "rules"), rules, fine);
    check_tls(e, FIELD(p, "tls"), json_get(spec, "tls"), fine);
    if (class)
        check_rule(e, FIELD(p, "ingressClassName"), NAME_DNS1123_SUBDOMAIN, json_str(class));
    if (!old)
        check_class_annotation(e, object);
}

static void validate_ingress_status(struct field_errors *e, const cJSON *object, const cJSON *old)
{
    const struct field_path *p = FIELD(FIELD(FIELD(NULL, "status"), "loadBalancer"), "ingress");
    cJSON *accepted = json_new_array(e->arena);
    size_t i = 0;

    json_each(item, json_path(old, "status.loadBalancer.ingress"))
        json_append(accepted, json_new_string(e->arena, json_str(json_get(item, "ip"))));
    json_each(item, json_path(object, "status.loadBalancer.ingress"))
    {
        const struct field_path *at = FIELD_INDEX(p, i++);
        struct str ip = json_str(json_get(item, "ip")), host = json_str(json_get(item, "hostname"));

        if (ip.n)
            check_legacy_ip(e, FIELD(at, "ip"), ip, accepted);
        if (host.n)
            check_rule(e, FIELD(at, "hostname"), NAME_DNS1123_SUBDOMAIN, host);
        if (host.n && is_ip(e->arena, host))
            field_invalid_str(e, FIELD(at, "hostname"), host,
                              "must be a DNS name, not an IP address");
    }
}

static void warn_ingress(struct arena *a, const cJSON *object, void (*warn)(void *, struct str),
                         void *ctx)
{
    (void)a;
    if (json_get(json_path(object, "metadata.annotations"), CLASS_ANNOTATION) &&
        !given(object, "spec.ingressClassName"))
        warn(ctx, STR("annotation \"" CLASS_ANNOTATION
                      "\" is deprecated, please use 'spec.ingressClassName' instead"));
}

static void cell_hosts(const struct row *r)
{
    const cJSON *rules = json_path(r->object, "spec.rules");
    size_t shown = 0;
    bool more = false;
    struct buf b = BUF_INIT(0);

    json_each(rule, rules)
    {
        struct str host = json_str(json_get(rule, "host"));

        more |= shown == 3;
        if (more || !host.n)
            continue;
        buf_addc(&b, shown++ ? "," : "");
        buf_add(&b, host);
    }
    if (more)
        buf_printf(&b, " + %zu more...", json_count(rules) - 3);
    cell_or(r, buf_str(&b), "*");
    buf_fini(&b);
}

static ROW_CELLS(cells_ingress)
{
    struct row r = {a, object, now, cells};
    struct buf b = BUF_INIT(0);

    cell_text_or(&r, "spec.ingressClassName", "<none>");
    cell_hosts(&r);
    cell_balancer_addresses(&b, object);
    cell_text(&r, buf_str(&b));
    buf_fini(&b);
    cell_text(&r, json_count(json_path(object, "spec.tls")) ? STR("80, 443") : STR("80"));
    cell_age(&r);
}

/* ---- the kind ---- */

static const struct column COLUMNS[] = {
    {"Class", "string", "", "", 0},   {"Hosts", "string", "", "", 0},
    {"Address", "string", "", "", 0}, {"Ports", "string", "", "", 0},
    {"Age", "string", "", "", 0},     {NULL, NULL, NULL, NULL, 0},
};

const struct kind KIND_INGRESS = {
    .resource =
        {
            RESOURCE("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress"),
            .short_names = NAMES("ing"),
            .verbs = VERBS_ALL,
            .flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE,
            .columns = COLUMNS,
            SUBRESOURCES(STATUS_OF("Ingress")),
        },
    .prepare_create = ingress_prepare_create,
    .validate = validate_ingress,
    .validate_status = validate_ingress_status,
    .warnings = warn_ingress,
    .cells = cells_ingress,
};
