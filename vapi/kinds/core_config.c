/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps, Secrets and ServiceAccounts. stringData must never reach the store. */
#include "cells.h"
#include "names.h"
#include "../schema/tree.h"

#include <sublet/encode.h>

/* ---- ConfigMap ---- */

const struct kind_ops CONFIG_MAP_OPS = {
    .cells = cells_config_map,
};

/* ---- Secret ---- */

/* stringData wins over data. */
static void put_string_data(struct arena *a, cJSON *data, const cJSON *texts)
{
    struct names there = {.arena = a};

    names_add_keys(&there, data);
    json_each(item, texts)
    {
        cJSON *value = json_new_string(a, base64_encode(a, json_str(item)));
        const cJSON *old = names_get(&there, str_c(item->string));

        if (old)
            tree_become((cJSON *)(uintptr_t)old, value);
        else
            tree_add(data, item->string, value);
    }
}

static void secret_defaults(struct arena *a, cJSON *secret)
{
    static const struct default_rule rules[] = {SET_TEXT_Z("type", "Opaque")};

    defaults_apply(a, secret, rules, COUNT(rules));
    if (!json_get(secret, "stringData"))
        return;
    if (json_count(json_get(secret, "stringData")))
        put_string_data(a, json_ensure_object(a, secret, "data"), json_get(secret, "stringData"));
    json_remove(secret, "stringData");
}

const struct kind_ops SECRET_OPS = {
    .defaults = secret_defaults,
    .cells = cells_secret,
};

/* ---- ServiceAccount ---- */

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

const struct kind_ops SERVICE_ACCOUNT_OPS = {
    .prepare_create = account_prepare,
    .prepare_update = account_prepare_update,
    .cells = cells_age,
};
