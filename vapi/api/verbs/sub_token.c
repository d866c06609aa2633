/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * serviceaccounts/token: what admission sees of a token request; vapi/auth issues the token. */
#include "verbs.h"

#include "../review/review.h"

void sub_token(struct call *c)
{
    static const struct reviewed_plan plan = {
        .operation = ADMISSION_CREATE, .check = auth_check_token_request, .run = auth_issue_token};

    auth_default_token_request(c);
    reviewed_start(c, &plan);
}
