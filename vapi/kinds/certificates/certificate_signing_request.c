/* SPDX-License-Identifier: Apache-2.0 */
/* CertificateSigningRequests. Must never judge what is requested: that is its signer's.
 * Source: pkg/apis/certificates/validation, ValidateSignerName in pkg/apis/core/validation. */
#include "../rules/kind.h"
#include "pem.h"

#include <sublet/clock.h>
#include <sublet/encode.h>
#include <sublet/object.h>
#include <string.h>

static void request_prepare_update(struct arena *a, cJSON *request, const cJSON *old)
{
    json_set(a, request, "spec", json_copy(a, json_get(old, "spec")));
}

/* Decisions are as they were unless their number changed, which validation refuses. */
static void request_prepare_status(struct arena *a, cJSON *request, const cJSON *old)
{
    static const char *const kept[] = {"Approved", "Denied"};
    cJSON *now = json_path(request, "status.conditions");
    cJSON *before = json_path(old, "status.conditions");

    for (size_t i = 0; i < COUNT(kept); i++) {
        cJSON *mine = condition_get(now, kept[i]);
        const cJSON *was = condition_get(before, kept[i]);

        if (mine && was)
            json_replace(now, mine, json_copy(a, was));
    }
}

#define MAX_SIGNER (253 + 253 + 63 + 1 + 1)

/* ---- names of signers ---- */

static bool check_labels_of(struct field_errors *e, const struct field_path *p, struct str shown,
                            enum name_rule rule, size_t *ret_n)
{
    const char *messages[NAME_MESSAGES_MAX];
    struct str rest = shown;
    size_t bad = 0;

    *ret_n = 1;
    for (size_t i = 0; i < shown.n; i++)
        *ret_n += shown.p[i] == '.';
    do {
        struct str label = str_cut(&rest, '.');
        size_t n = name_check(rule, label, messages);

        for (size_t i = 0; i < n; i++)
            field_invalid_str_printf(e, p, shown, "validating label %.*s: %s",
                                     STR_F(go_quote(e->arena, label)), messages[i]);
        bad += n;
    } while (rest.p && !bad);
    return !bad;
}

static void check_signer(struct field_errors *e, const struct field_path *p, struct str name)
{
    struct str path = name, domain = str_cut(&path, '/');
    size_t labels;

    if (!check_given(e, p, name))
        return;
    if (!path.p || str_find(path, '/') < path.n) {
        field_invalid_str(e, p, name,
                          "must be a fully qualified domain and path of the form "
                          "'example.com/signer-name'");
        return;
    }
    if (domain.n > 253)
        field_too_long(e, p, 253);
    check_labels_of(e, p, domain, NAME_DNS1123_LABEL, &labels);
    if (labels < 2)
        field_invalid_str(e, p, domain,
                          "should be a domain with at least two segments separated by dots");
    check_labels_of(e, p, path, NAME_DNS1123_SUBDOMAIN, &labels);
    if (name.n > MAX_SIGNER)
        field_too_long(e, p, MAX_SIGNER);
}

/* ---- PEM, as far as it needs no cryptography ---- */

/* Whether the bytes have a PEM block of that type. */
static bool has_block(struct arena *a, struct str text, const char *type)
{
    struct str begin = arena_printf(a, "-----BEGIN %s-----", type);
    struct str end = arena_printf(a, "-----END %s-----", type);
    const char *at = text.n ? memmem(text.p, text.n, begin.p, begin.n) : NULL;

    return at && memmem(at, text.n - (size_t)(at - text.p), end.p, end.n);
}

static void check_certificate(struct field_errors *e, const struct field_path *p,
                              const cJSON *certificate)
{
    struct str text;
    const char *why;

    if (!json_str(certificate).n || !base64_decode(e->arena, json_str(certificate), &text) ||
        !text.n)
        return;
    why = kinds_certificate_problem(e->arena, text);
    if (why)
        field_invalid_str(e, p, STR("<certificate data>"), why);
}

/* ---- CertificateSigningRequest ---- */

static void check_request(struct field_errors *e, const struct field_path *p, const cJSON *spec)
{
    const cJSON *request = json_get(spec, "request"); /* as it is shown: null when Go has none */
    struct str text = STR("");

    if (!base64_decode(e->arena, json_str(request), &text) ||
        !has_block(e->arena, text, "CERTIFICATE REQUEST"))
        field_invalid(e, FIELD(p, "request"), request ? request : json_new_string(e->arena, text),
                      "PEM block type must be CERTIFICATE REQUEST");
}

static void check_state(const struct check *c)
{
    bool decision = kinds_one_of(json_str(json_get(c->value, "type")), ENUM_REQUEST_CONDITION_TYPE);

    check_enum(c->e, FIELD(c->at, "status"), json_str(json_get(c->value, "status")),
               decision ? NAMES("True") : ENUM_CONDITION_STATUS);
}

static void check_exclusive(const struct check *c)
{
    struct str type = json_str(c->value);

    if ((str_eqc(type, "Approved") && names_has(c->seen, STR("Denied"))) ||
        (str_eqc(type, "Denied") && names_has(c->seen, STR("Approved"))))
        field_invalid_str(c->e, c->at->parent->parent, type,
                          "Approved and Denied conditions are mutually exclusive");
}

static size_t count_type(const cJSON *conditions, const char *type)
{
    size_t n = 0;

    json_each(condition, conditions) n += kinds_text_is(condition, "type", type);
    return n;
}

/* Decisions stay; /approval is the only endpoint that adds one. */
static void check_decisions(const struct check *c)
{
    for (size_t i = 0; ENUM_REQUEST_CONDITION_TYPE[i]; i++) {
        size_t has = count_type(c->value, ENUM_REQUEST_CONDITION_TYPE[i]),
               had = count_type(c->old, ENUM_REQUEST_CONDITION_TYPE[i]);

        if (has < had)
            field_forbidden_printf(c->e, c->at, "updates may not remove a condition of type \"%s\"",
                                   ENUM_REQUEST_CONDITION_TYPE[i]);
        if (has > had && i < 2)
            field_forbidden_printf(c->e, c->at, "updates may not add a condition of type \"%s\"",
                                   ENUM_REQUEST_CONDITION_TYPE[i]);
    }
}

#define LEGACY_SIGNER "kubernetes.io/legacy-unknown"
static const struct rule REQUEST_RULES[] = {
    ON_CREATE(
        INSIDE("spec", CHECK_ALWAYS(NULL, check_request), SOME("usages", ""),
               EACH_ENUM("usages", ENUM_KEY_USAGE), UNIQUE("usages", NULL),
               NOT_IN("signerName", NAMES(LEGACY_SIGNER),
                      "the legacy signerName is not allowed via this API version"),
               UNLESS(NULL, "signerName", LEGACY_SIGNER, CHECK_STR("signerName", check_signer)),
               AT_LEAST("expirationSeconds", 600,
                        "may not specify a duration less than 600 seconds (10 minutes)"))),
    EACH("status.conditions", GIVEN("type"), CALL(NULL, check_state), CALL("type", check_exclusive),
         ONCE("type")),
    CHECK("status.certificate", check_certificate),
};
static const struct rule REQUEST_STATUS_RULES[] = {
    ALL(REQUEST_RULES),
    CALL("status.conditions", check_decisions),
    FIXED_ONCE_SET("status.certificate", "updates may not modify existing certificate content"),
};

CELL(cell_requested_duration)
{
    int64_t seconds;

    if (json_i64(json_path(r->object, "spec.expirationSeconds"), &seconds))
        cell_text(r, duration_human(r->a, seconds));
    else
        cell_text(r, STR("<none>"));
}

CELL(cell_condition)
{
    const cJSON *conditions = json_path(r->object, "status.conditions");
    const char *state = count_type(conditions, "Denied")     ? "Denied"
                        : count_type(conditions, "Approved") ? "Approved"
                                                             : "Pending";

    cell_printf(r, "%s%s%s", state, count_type(conditions, "Failed") ? ",Failed" : "",
                json_str_at(r->object, "status.certificate").n ? ",Issued" : "");
}

/* ---- the kind ---- */

const struct kind KIND_CERTIFICATE_SIGNING_REQUEST = {
    RESOURCE("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests",
             "certificatesigningrequest"),
    .resource.short_names = NAMES("csr"),
    .resource.flags = RES_STATUS | RES_SYSTEM_NAME | RES_ANY_PREFIX,
    COLUMNS({"Age", "string", .cell = show_age},
            {"SignerName", "string", .cell = show_text, .path = "spec.signerName",
             .otherwise = "<none>"},
            {"Requestor", "string", .cell = show_text, .path = "spec.username"},
            {"RequestedDuration", "string", .cell = cell_requested_duration},
            {"Condition", "string", .cell = cell_condition}),
    FIELDS({"spec.signerName", "spec.signerName", ""}),
    SUBRESOURCES({"approval", SUB_APPROVAL, VERB_GET | VERB_UPDATE | VERB_PATCH, "", "",
                  "CertificateSigningRequest", NULL, NAMES("spec", "status.certificate")},
                 STATUS_OF("CertificateSigningRequest", "spec", "status.conditions")),
    .reset = NAMES("spec", "status"),
    .new_status = "{}",
    .prepare_update = request_prepare_update,
    .prepare_status = request_prepare_status,
    .rules = RULES(REQUEST_RULES),
    .status_rules = RULES(REQUEST_STATUS_RULES),
};
