/* SPDX-License-Identifier: Apache-2.0 */
/* Ingresses. Must never refuse on update what an older server accepted. Source:
 * pkg/apis/networking/validation. */
#include "../rules/kind.h"
#include "reference.h"

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

static const struct rule RESOURCE_BACKEND[] = {WITHIN("resource", TYPED_REFERENCE)};

static void check_backend(struct field_errors *e, const struct field_path *p, const cJSON *backend)
{
    const cJSON *resource = kinds_given(backend, "resource"),
                *service = kinds_given(backend, "service");

    if (resource && service)
        field_invalid_str(e, p, STR(""), "cannot set both resource and service backends");
    else if (resource)
        rules_check_value(e, p, backend, NULL, RESOURCE_BACKEND, COUNT(RESOURCE_BACKEND));
    else if (service)
        check_service(e, p, service);
    else
        field_invalid_str(e, p, STR(""), "resource or service backend is required");
}

/* ---- rules ---- */

static void check_exact_path(struct field_errors *e, const struct field_path *p, struct str path)
{
    static const char *const inside[] = {"//", "/./", "/../", "%2f", "%2F"};
    static const char *const at_end[] = {"/..", "/."};

    if (!kinds_is_absolute(path))
        field_invalid_str(e, p, path, "must be an absolute path");
    if (!path.n)
        return;
    for (size_t i = 0; i < COUNT(inside); i++) {
        if (str_contains(path, str_c(inside[i])))
            field_invalid_str_printf(e, p, path, "must not contain '%s'", inside[i]);
    }
    for (size_t i = 0; i < COUNT(at_end); i++) {
        if (str_has_suffix(path, str_c(at_end[i])))
            field_invalid_str_printf(e, p, path, "cannot end with '%s'", at_end[i]);
    }
}

static void check_path(struct field_errors *e, const struct field_path *p, const cJSON *item)
{
    const cJSON *type = kinds_given(item, "pathType");
    struct str path = json_str(json_get(item, "path"));

    if (!type) {
        field_required(e, FIELD(p, "pathType"), "pathType must be specified");
        return;
    }
    if (!kinds_one_of(json_str(type), ENUM_PATH_TYPE))
        field_not_supported(e, FIELD(p, "pathType"), json_str(type), ENUM_PATH_TYPE);
    else if (!str_eqc(json_str(type), "ImplementationSpecific"))
        check_exact_path(e, FIELD(p, "path"), path);
    else if (path.n && !kinds_is_absolute(path))
        field_invalid_str(e, FIELD(p, "path"), path, "must be an absolute path");
    check_backend(e, FIELD(p, "backend"), json_get(item, "backend"));
}

static const struct rule RULE_VALUE[] = {
    WITHIN("http", SOME("paths", ""), CHECK_EACH("paths", check_path))};

static void check_rule_host(const struct check *c)
{
    const struct leniency *fine = c->context;
    struct str host = json_str(json_get(c->value, "host"));
    AT(at, c->at, "host");

    if (kinds_is_ip(c->e->arena, host))
        field_invalid_str(c->e, at, host, "must be a DNS name, not an IP address");
    if (host.n)
        check_host(c->e, at, host);
    if (str_find(host, '*') == host.n || !fine->wildcard_rules)
        rules_check(c, RULE_VALUE, COUNT(RULE_VALUE));
}

static void check_secret_name(const struct check *c)
{
    const struct leniency *fine = c->context;

    if (json_str(c->value).n && !fine->secret_names)
        check_rule(c->e, c->at, NAME_DNS1123_SUBDOMAIN, json_str(c->value));
}

static const struct rule LENIENT[] = {
    EACH("rules", CALL(NULL, check_rule_host)),
    EACH("tls", CHECK_EACH_STR("hosts", check_host), CALL("secretName", check_secret_name)),
};

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
            rules_check_value(&found, NULL, rule, NULL, RULE_VALUE, COUNT(RULE_VALUE));
        ret.wildcard_rules |= found.n > 0;
    }
    return ret;
}

static void check_lenient(const struct check *c)
{
    struct leniency fine = leniency_of(c->e->arena, c->before);

    rules_check_value(c->e, c->at, c->value, &fine, LENIENT, COUNT(LENIENT));
}

static void check_some(const struct check *c)
{
    const cJSON *rules = json_get(c->value, "rules");

    if (!json_count(rules) && !kinds_given(c->value, "defaultBackend"))
        field_invalid(c->e, c->at, rules, "either `defaultBackend` or `rules` must be specified");
}

static void check_class_annotation(const struct check *c)
{
    const cJSON *annotation =
        json_get(json_path(c->object, "metadata.annotations"), CLASS_ANNOTATION);
    const cJSON *name = kinds_given(c->object, "spec.ingressClassName");

    if (annotation && name && !json_equal(annotation, name))
        field_invalid(c->e, FIELD(FIELD(NULL, "annotations"), CLASS_ANNOTATION), annotation,
                      "must match `ingressClassName` when both are specified");
}

static const struct rule INGRESS_RULES[] = {
    CALL("spec", check_some),
    CHECK("spec.defaultBackend", check_backend),
    CALL("spec", check_lenient),
    NAME_IF_GIVEN("spec.ingressClassName", DNS1123_SUBDOMAIN),
    ON_CREATE(CALL(NULL, check_class_annotation)),
};

static void check_balancer(const struct check *c)
{
    cJSON *accepted = json_new_array(c->e->arena);

    json_each(item, c->old)
        json_append(accepted, json_new_string(c->e->arena, json_str(json_get(item, "ip"))));
    field_each(item, at, c->at, c->value)
    {
        struct str ip = json_str(json_get(item, "ip")), host = json_str(json_get(item, "hostname"));

        if (ip.n)
            check_legacy_ip(c->e, FIELD(at, "ip"), ip, accepted);
        if (host.n)
            check_rule(c->e, FIELD(at, "hostname"), NAME_DNS1123_SUBDOMAIN, host);
        if (host.n && kinds_is_ip(c->e->arena, host))
            field_invalid_str(c->e, FIELD(at, "hostname"), host,
                              "must be a DNS name, not an IP address");
    }
}

static const struct rule STATUS_RULES[] = {CALL("status.loadBalancer.ingress", check_balancer)};

static WARNS(warn_ingress)
{
    (void)a;
    if (json_get(json_path(object, "metadata.annotations"), CLASS_ANNOTATION) &&
        !kinds_given(object, "spec.ingressClassName"))
        warn(ctx, STR("annotation \"" CLASS_ANNOTATION
                      "\" is deprecated, please use 'spec.ingressClassName' instead"));
}

CELL(cell_hosts)
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

CELL(cell_address)
{
    struct buf b = BUF_INIT(0);

    cell_balancer_addresses(&b, r->object);
    cell_text(r, buf_str(&b));
    buf_fini(&b);
}

CELL(cell_ports)
{
    cell_text(r, json_count(json_path(r->object, "spec.tls")) ? STR("80, 443") : STR("80"));
}

/* ---- the kind ---- */

const struct kind KIND_INGRESS = {
    RESOURCE("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress"),
    .resource.short_names = NAMES("ing"),
    .resource.flags = RES_NAMESPACED | RES_STATUS | RES_GENERATION | RES_NAME_ON_UPDATE,
    COLUMNS({"Class", "string", .cell = show_text, .path = "spec.ingressClassName",
             .otherwise = "<none>"},
            {"Hosts", "string", .cell = cell_hosts}, {"Address", "string", .cell = cell_address},
            {"Ports", "string", .cell = cell_ports}, {"Age", "string", .cell = show_age}),
    SUBRESOURCES(STATUS_OF("Ingress")),
    .new_status = "{\"loadBalancer\":{}}",
    .rules = RULES(INGRESS_RULES),
    .status_rules = RULES(STATUS_RULES),
    .warnings = warn_ingress,
};
