/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccounts: the account of the host that a pod runs under. It has no token, no Secrets and
 * no rights; by an annotation it may have an identity of a cloud. Must never carry an annotation
 * that the admin did not list together with this value, whatever policy.annotations has. */

#include "kind_impl.h"

static int keep_identities(const struct kind_call *c, const cJSON *annotations, cJSON **ret)
{
    const struct config_to_host *to = c->tenant->config->to_host;

    *ret = json_new_object(c->arena);
    json_each(note, annotations)
    {
        const struct config_choice *identity = config_choice_of(to->identities, json_key(note));
        struct kind_call one = *c;

        if (!identity)
            continue;
        if (json_is_string(note) && config_choice_allows(identity, json_str(note))) {
            object_add(c->arena, *ret, json_key(note), json_copy(c->arena, note));
            continue;
        }
        one.path = arena_printf(c->arena, "metadata.annotations[%s]", note->string).p;
        if (translate_kind_refuse(
                &one, "is a value that the administrator of the host does not permit") &&
            !translate_kind_leaves_out(&one))
            return -1;
    }
    return 0;
}

/* Its imagePullSecrets are in the pods already: this API's admission adds them. */
static void close_account(const struct kind_call *c, cJSON *host)
{
    json_set_bool(c->arena, host, "automountServiceAccountToken", false);
}

static const struct kind_rule DOWN[] = {{0}};

const struct kind_rules TRANSLATE_RULES_SERVICE_ACCOUNT = {.api_version = "v1",
                                                           .kind = "ServiceAccount",
                                                           .group = "",
                                                           .plural = "serviceaccounts",
                                                           .down = DOWN,
                                                           .annotations = keep_identities,
                                                           .with_pods = true,
                                                           .finish = close_account};
