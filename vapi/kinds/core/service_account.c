/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccounts. Must keep no more of a reference to a Secret than its name. */
#include "../rules/kind.h"

/* Of the secrets only the names are kept. */
static void account_prepare(struct arena *a, cJSON *account)
{
    cJSON *list = json_get(account, "secrets");

    for (cJSON *item = json_first(list), *next; item; item = next) {
        cJSON *only = json_new_object(a);

        next = item->next;
        if (json_str(json_get(item, "name")).n)
            json_set_str(a, only, "name", json_str(json_get(item, "name")));
        json_replace(list, item, only);
    }
}

static void account_prepare_update(struct arena *a, cJSON *account, const cJSON *old)
{
    (void)old;
    account_prepare(a, account);
}

/* ---- the kind ---- */

const struct kind KIND_SERVICE_ACCOUNT = {
    RESOURCE("", "v1", "ServiceAccount", "serviceaccounts", "serviceaccount"),
    .resource.short_names = NAMES("sa"),
    .resource.flags = RES_NAMESPACED | RES_DELETE_RETURNS_OBJECT | RES_NAME_ON_UPDATE,
    .resource.columns = COLUMNS_AGE,
    SUBRESOURCES(
        {"token", SUB_TOKEN, VERB_CREATE, "authentication.k8s.io", "v1", "TokenRequest", NULL}),
    .prepare_create = account_prepare,
    .prepare_update = account_prepare_update,
};
