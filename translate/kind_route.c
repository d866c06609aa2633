/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of the Gateway API. Why no rule judges their host names: a route gets traffic of a
 * listener's host names only, and the listener's were judged. Must never send a reference that is
 * not translated; see kind_reference.c. */

#include "kind_impl.h"

#define REFERENCE(path)                                                                            \
    {path ".group", KIND_KEEP}, {path ".kind", KIND_KEEP},                                         \
    {                                                                                              \
        path ".name", KIND_CALL, .what = "Service", .call = gateway_reference_down                 \
    }
#define BACKEND(path)                                                                              \
    REFERENCE(path),                                                                               \
    {                                                                                              \
        path ".port", KIND_KEEP                                                                    \
    }
#define PAIRS(path)                                                                                \
    {path "[*].name", KIND_KEEP},                                                                  \
    {                                                                                              \
        path "[*].value", KIND_KEEP                                                                \
    }
#define HEADERS(path)                                                                              \
    PAIRS(path ".set"), PAIRS(path ".add"),                                                        \
    {                                                                                              \
        path ".remove[*]", KIND_KEEP                                                               \
    }
#define MATCH(path) {path "[*].type", KIND_KEEP}, PAIRS(path)

/* A filter whose settings no row names is refused by the host's schema, by its type. */
#define FILTERS(f)                                                                                 \
    {f "type", KIND_KEEP}, HEADERS(f "requestHeaderModifier"),                                     \
        HEADERS(f "responseHeaderModifier"), BACKEND(f "requestMirror.backendRef"),                \
        {f "requestMirror.percent", KIND_KEEP}, {f "requestMirror.fraction.numerator", KIND_KEEP}, \
        {f "requestMirror.fraction.denominator", KIND_KEEP}, REFERENCE(f "extensionRef")

#define PATH_MODIFIER(f)                                                                           \
    {f ".hostname", KIND_KEEP}, {f ".path.type", KIND_KEEP},                                       \
        {f ".path.replaceFullPath", KIND_KEEP},                                                    \
    {                                                                                              \
        f ".path.replacePrefixMatch", KIND_KEEP                                                    \
    }
#define HTTP_FILTERS(f)                                                                            \
    FILTERS(f), PATH_MODIFIER(f "requestRedirect"), {f "requestRedirect.scheme", KIND_KEEP},       \
        {f "requestRedirect.port", KIND_KEEP}, {f "requestRedirect.statusCode", KIND_KEEP},        \
        PATH_MODIFIER(f "urlRewrite"), {f "cors.allowCredentials", KIND_KEEP},                     \
        {f "cors.allowHeaders[*]", KIND_KEEP}, {f "cors.allowMethods[*]", KIND_KEEP},              \
        {f "cors.allowOrigins[*]", KIND_KEEP}, {f "cors.exposeHeaders[*]", KIND_KEEP},             \
    {                                                                                              \
        f "cors.maxAge", KIND_KEEP                                                                 \
    }

#define R "spec.rules[*]."
#define ROUTE                                                                                      \
    {"spec.parentRefs", KIND_CALL, .call = gateway_parents_down},                                  \
        {"spec.hostnames[*]", KIND_KEEP}, {R "name", KIND_KEEP}, BACKEND(R "backendRefs[*]"),      \
    {                                                                                              \
        R "backendRefs[*].weight", KIND_KEEP                                                       \
    }

static const struct kind_rule HTTP_ROUTE[] = {
    ROUTE,
    {R "matches[*].path.type", KIND_KEEP},
    {R "matches[*].path.value", KIND_KEEP},
    {R "matches[*].method", KIND_KEEP},
    MATCH(R "matches[*].headers"),
    MATCH(R "matches[*].queryParams"),
    {R "timeouts.request", KIND_KEEP},
    {R "timeouts.backendRequest", KIND_KEEP},
    HTTP_FILTERS(R "filters[*]."),
    HTTP_FILTERS(R "backendRefs[*].filters[*]."),
    {0},
};

static const struct kind_rule GRPC_ROUTE[] = {
    ROUTE,
    {R "matches[*].method.type", KIND_KEEP},
    {R "matches[*].method.service", KIND_KEEP},
    {R "matches[*].method.method", KIND_KEEP},
    MATCH(R "matches[*].headers"),
    FILTERS(R "filters[*]."),
    FILTERS(R "backendRefs[*].filters[*]."),
    {0},
};

static const struct kind_rule TLS_ROUTE[] = {
    ROUTE,
    {0},
};

static const struct kind_rule UP[] = {
    {"status.parents", KIND_CALL, .call = gateway_parents_up},
    {0},
};

const struct kind_rules TRANSLATE_RULES_HTTP_ROUTE = {.api_version = GATEWAY_GROUP "/v1",
                                                      .kind = "HTTPRoute",
                                                      .group = GATEWAY_GROUP,
                                                      .plural = "httproutes",
                                                      .patched = 1 + DOWN_HTTP_ROUTES,
                                                      .down = HTTP_ROUTE,
                                                      .up = UP,
                                                      .annotations = translate_kind_notes,
                                                      .reads_gateways = true};

const struct kind_rules TRANSLATE_RULES_GRPC_ROUTE = {.api_version = GATEWAY_GROUP "/v1",
                                                      .kind = "GRPCRoute",
                                                      .group = GATEWAY_GROUP,
                                                      .plural = "grpcroutes",
                                                      .patched = 1 + DOWN_GRPC_ROUTES,
                                                      .down = GRPC_ROUTE,
                                                      .up = UP,
                                                      .annotations = translate_kind_notes,
                                                      .reads_gateways = true};

const struct kind_rules TRANSLATE_RULES_TLS_ROUTE = {.api_version = GATEWAY_GROUP "/v1",
                                                     .kind = "TLSRoute",
                                                     .group = GATEWAY_GROUP,
                                                     .plural = "tlsroutes",
                                                     .patched = 1 + DOWN_TLS_ROUTES,
                                                     .down = TLS_ROUTE,
                                                     .up = UP,
                                                     .annotations = translate_kind_notes,
                                                     .reads_gateways = true};
