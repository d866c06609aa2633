/* SPDX-License-Identifier: Apache-2.0 */
/* `sync.toHost.serviceAccounts`: the annotations by which an account of the host becomes an
 * identity of a cloud, with the values that a tenant may give them. Must never take a list of keys
 * alone. */

#include <sublet/config_sync.h>

#include "impl.h"

static int accounts_enabled(const struct place *at, const cJSON *value, void *into)
{
    return place_bool(at, value, &((struct config_to_host *)into)->enabled[DOWN_SERVICE_ACCOUNTS]);
}

static int accounts_annotations(const struct place *at, const cJSON *value, void *into)
{
    return config_read_choices(at, value, &((struct config_to_host *)into)->identities);
}

static const struct place_key ACCOUNT_KEYS[] = {
    {"enabled", accounts_enabled},
    {"annotations", accounts_annotations},
    {0},
};

int config_read_service_accounts(const struct place *at, const cJSON *value, void *into)
{
    return place_object(at, value, ACCOUNT_KEYS, into);
}
