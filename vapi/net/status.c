/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers net makes without the handler. Why: Kubernetes clients parse every error as a
 * metav1.Status, so a request that never reached the API is refused in that form too. Must never
 * echo bytes of the request. */
#include "server.h"

#include <assert.h>

static const struct {
    const char *reason; /* "": none, as for codes without a metav1 reason */
    const char *message;
    int code;
    bool retry;
} REFUSALS[] = {
    [REFUSE_MALFORMED] = {"BadRequest", "the request is not well-formed HTTP", 400, false},
    /* The message of apierrors.NewRequestEntityTooLargeError. */
    [REFUSE_BODY_TOO_LARGE] = {"RequestEntityTooLarge", "Request entity too large: limit is ", 413,
                               false},
    [REFUSE_HEADERS_TOO_LARGE] = {"", "the headers of the request are too large: limit is ", 431,
                                  false},
    [REFUSE_CODING] = {"", "the transfer encoding of the request is not supported", 501, false},
    [REFUSE_EXPECTATION] = {"", "the expectation of the request is not supported", 417, false},
    [REFUSE_BUSY] = {"TooManyRequests", "too many requests, please try again later", 429, true},
};

static const struct {
    int status;
    struct str text;
} PHRASES[] = {
    {101, {"Switching Protocols", 19}},
    {200, {"OK", 2}},
    {201, {"Created", 7}},
    {202, {"Accepted", 8}},
    {204, {"No Content", 10}},
    {301, {"Moved Permanently", 17}},
    {302, {"Found", 5}},
    {304, {"Not Modified", 12}},
    {307, {"Temporary Redirect", 18}},
    {400, {"Bad Request", 11}},
    {401, {"Unauthorized", 12}},
    {403, {"Forbidden", 9}},
    {404, {"Not Found", 9}},
    {405, {"Method Not Allowed", 18}},
    {406, {"Not Acceptable", 14}},
    {408, {"Request Timeout", 15}},
    {409, {"Conflict", 8}},
    {410, {"Gone", 4}},
    {413, {"Request Entity Too Large", 24}},
    {415, {"Unsupported Media Type", 22}},
    {417, {"Expectation Failed", 18}},
    {422, {"Unprocessable Entity", 20}},
    {429, {"Too Many Requests", 17}},
    {431, {"Request Header Fields Too Large", 31}},
    {500, {"Internal Server Error", 21}},
    {501, {"Not Implemented", 15}},
    {502, {"Bad Gateway", 11}},
    {503, {"Service Unavailable", 19}},
    {504, {"Gateway Timeout", 15}},
    {507, {"Insufficient Storage", 20}},
};

struct str net_status_phrase(int status)
{
    for (size_t i = 0; i < COUNT(PHRASES); i++) {
        if (PHRASES[i].status == status)
            return PHRASES[i].text;
    }
    return STR("Status");
}

static size_t refusal_limit(const struct net_options *options, enum refusal why)
{
    if (why == REFUSE_BODY_TOO_LARGE)
        return options->max_body;
    if (why == REFUSE_HEADERS_TOO_LARGE)
        return options->max_header_bytes;
    return 0;
}

void exchange_refuse(struct net_exchange *x, enum refusal why)
{
    const struct net_header headers[] = {
        {STR("content-type"), STR("application/json")},
        {STR("retry-after"), STR("1")},
    };
    size_t limit = refusal_limit(&x->conn->server->options, why);
    const char *reason = REFUSALS[why].reason;
    struct net_slice body = {.release = NULL};

    assert(!exchange_answered(x));
    body.bytes = arena_printf(
        x->arena,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"%s%s\",%s%s%s%s\"code\":%d}\n",
        REFUSALS[why].message, limit ? arena_printf(x->arena, "%zu", limit).p : "",
        *reason ? "\"reason\":\"" : "", reason, *reason ? "\"," : "",
        REFUSALS[why].retry ? "\"details\":{\"retryAfterSeconds\":1}," : "", REFUSALS[why].code);
    x->refused = true;
    x->conn->server->too_many_requests += why == REFUSE_BUSY;
    net_respond(x, REFUSALS[why].code, headers, REFUSALS[why].retry ? 2 : 1, &body, 1);
}
