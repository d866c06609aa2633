/* SPDX-License-Identifier: Apache-2.0 */
/* spec.conversion of a CustomResourceDefinition. Must never refuse an update for what it found.
 * Source: apiextensions-apiserver pkg/apis/apiextensions/validation. */
#include "schema_checks.h"

#include <sublet/object.h>
#include <sublet/selector.h>
#include <sublet/client_config.h>

#define MAX_VERSIONS 64 /* of reviews; upstream has no limit */

static void check_label(struct field_errors *e, const struct field_path *p, struct str s)
{
    const char *wrong = name_check_dns1035_label(s);

    if (wrong)
        field_invalid_str(e, p, s, wrong);
}

static bool has_known_review(const cJSON *versions)
{
    return json_list_has(versions, STR("v1")) || json_list_has(versions, STR("v1beta1"));
}

/* old: the list of the CRD before the update, which may be kept without a version we know. */
static void check_reviews(struct field_errors *e, const struct field_path *p, const cJSON *versions,
                          const cJSON *old)
{
    size_t i = 0;

    if (!json_count(versions)) {
        field_required(e, p, "");
        return;
    }
    json_each(version, versions)
    {
        const struct field_path *at = FIELD_INDEX(p, i);
        bool seen = false;

        for (const cJSON *before = json_first(versions); before != version; before = before->next)
            seen = seen || json_equal(before, version);
        if (seen)
            field_invalid(e, at, version, "duplicate version");
        else
            check_label(e, at, json_str(version));
        if (++i == MAX_VERSIONS)
            break;
    }
    if (!has_known_review(versions) && (!json_count(old) || has_known_review(old)))
        field_invalid(e, p, versions, "must include at least one of v1, v1beta1");
}

/* A wrong bundle keeps a CRD from being established; what is, may keep one. */
static bool may_keep_bundle(struct arena *a, const cJSON *old)
{
    const cJSON *before = json_path(old, "spec.conversion.webhook.clientConfig.caBundle");

    return !condition_is_true(json_path(old, "status.conditions"), "Established") ||
           (json_str(before).n && !client_config_has_ca(a, before));
}

static void check_client(struct field_errors *e, const struct field_path *p, const cJSON *client,
                         const cJSON *old)
{
    const cJSON *url = json_get(client, "url"), *service = json_get(client, "service");

    client_config_check_server(e, p, url, service);
    if (!may_keep_bundle(e->arena, old))
        client_config_check_ca(e, FIELD(p, "caBundle"), json_get(client, "caBundle"));
}

void crd_check_conversion(struct field_errors *e, const cJSON *spec, const cJSON *old)
{
    static const char *const strategies[] = {"None", "Webhook", NULL};
    static const char idle[] = "should not be set when strategy is not set to Webhook";
    const struct field_path *p = FIELD(FIELD(NULL, "spec"), "conversion"),
                            *at_client = FIELD(p, "webhookClientConfig"),
                            *at_versions = FIELD(p, "conversionReviewVersions");
    const cJSON *conversion = json_get(spec, "conversion"),
                *webhook = json_get(conversion, "webhook"),
                *client = json_get(webhook, "clientConfig"),
                *versions = json_get(webhook, "conversionReviewVersions");
    struct str strategy = json_str(json_get(conversion, "strategy"));

    if (!str_eqc(strategy, "None") && json_true(json_get(spec, "preserveUnknownFields")))
        field_invalid_str(e, FIELD(p, "strategy"), strategy,
                          "must be None if spec.preserveUnknownFields is true");
    if (!str_eqc(strategy, "None") && !str_eqc(strategy, "Webhook"))
        field_not_supported(e, FIELD(p, "strategy"), strategy, strategies);
    if (!str_eqc(strategy, "Webhook")) {
        if (client)
            field_forbidden(e, at_client, idle);
        if (json_count(versions))
            field_forbidden(e, at_versions, idle);
        return;
    }
    if (!client)
        field_required(e, at_client, "required when strategy is set to Webhook");
    else
        check_client(e, at_client, client, old);
    check_reviews(e, at_versions, versions,
                  json_path(old, "spec.conversion.webhook.conversionReviewVersions"));
}
