/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and lifecycle handlers of containers. Source: validateHandler and its callers in
 * pkg/apis/core/validation/validation.go. */
#include "parts.h"

/* ---- handlers ---- */

static void check_headers(const struct check *c)
{
    json_each(header, c->value)
    {
        struct str name = json_str(json_get(header, "name"));

        if (!kinds_is_made_of(name, "-"))
            field_invalid_str(c->e, c->at, name,
                              "a valid HTTP header must consist of alphanumeric characters or '-' "
                              "(e.g. 'X-Header-Name', regex used for validation is "
                              "'[-A-Za-z0-9]+')");
    }
}

/* context: the spec of the pod. */
static void check_sleep(const struct check *c)
{
    int64_t grace, seconds = json_i64_at(c->value, "seconds", 0);

    if (json_i64(json_get(c->context, "terminationGracePeriodSeconds"), &grace) &&
        (seconds < 0 || seconds > grace))
        field_invalid_printf(c->e, c->at, json_get(c->value, "seconds"),
                             "must be non-negative and less than "
                             "terminationGracePeriodSeconds (%lld)",
                             (long long)grace);
}

/* In upstream's order; the first is checked. */
static const struct rule HANDLERS[] = {
    WITHIN("exec", SOME("command", "")),
    WITHIN("httpGet", GIVEN("path"), PORT_OR_NAME("port"), ENUM_ALWAYS("scheme", ENUM_URI_SCHEME),
           CALL("httpHeaders", check_headers)),
    WITHIN("tcpSocket", PORT_OR_NAME("port")),
    WITHIN("grpc", PORT_OR_NAME("port")),
    WITHIN("sleep", CALL(NULL, check_sleep)),
};

static void check_handler(struct pod_check *c, const struct field_path *p, const cJSON *handler)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT(HANDLERS); i++) {
        if (!json_get(handler, HANDLERS[i].path))
            continue;
        if (n++)
            field_forbidden(c->e, FIELD(p, HANDLERS[i].path),
                            "may not specify more than 1 handler type");
        else
            rules_check_value(c->e, p, handler, c->spec, &HANDLERS[i], 1);
    }
    if (!n)
        field_required(c->e, p, "must specify a handler type");
}

/* ---- probes ---- */

static const struct rule PROBE[] = {
    NONNEGATIVES(NULL, "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
                 "failureThreshold"),
    AT_LEAST("terminationGracePeriodSeconds", 1, "must be greater than 0"),
};
static const struct rule OF_READINESS[] = {
    INVALID("terminationGracePeriodSeconds", "must not be set for readinessProbes"),
};
static const struct rule OF_OTHERS[] = {RANGE_ELSE("successThreshold", 1, 1, "must be 1")};

void validate_probes(struct pod_check *c, const struct field_path *p, const cJSON *container)
{
    static const struct {
        const char *name;
        const struct rule *rows; /* one */
    } probes[] = {{"livenessProbe", OF_OTHERS},
                  {"readinessProbe", OF_READINESS},
                  {"startupProbe", OF_OTHERS}};

    for (size_t i = 0; i < COUNT(probes); i++) {
        const cJSON *probe = json_get(container, probes[i].name);
        AT(at, p, probes[i].name);

        if (!probe)
            continue;
        check_handler(c, at, probe);
        rules_check_value(c->e, at, probe, NULL, PROBE, COUNT(PROBE));
        rules_check_value(c->e, at, probe, NULL, probes[i].rows, 1);
    }
}

/* ---- lifecycle ---- */

void validate_lifecycle(struct pod_check *c, const struct field_path *p, const cJSON *lifecycle)
{
    static const char *const names[] = {"postStart", "preStop"};

    for (size_t i = 0; i < COUNT(names); i++) {
        const cJSON *handler = json_get(lifecycle, names[i]);

        if (handler)
            check_handler(c, FIELD(p, names[i]), handler);
    }
    if (json_get(lifecycle, "stopSignal") && !json_get(c->spec, "os"))
        field_forbidden(c->e, FIELD(p, "stopSignal"),
                        "may not be set for containers with empty `spec.os.name`");
}
