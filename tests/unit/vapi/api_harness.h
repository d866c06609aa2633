/* SPDX-License-Identifier: Apache-2.0 */
/* A whole API core on a temporary store, called over a loopback connection by a real HTTP client.
 * The rooms around it (authentication, admission, CRDs, controllers) are stand-ins a test can
 * steer. Must never be linked with the rooms it stands in for. */
#pragma once

#include <sublet/admission.h>
#include <sublet/vapi.h>

struct harness;

struct answer {
    int status;
    struct str body, headers; /* header lines as received, names in lower case */
    cJSON *json;              /* NULL when the body is none */
};

struct harness *harness_new(void);
/* Hooks as the syncer would set them. */
struct harness *harness_new_with(const struct vapi_hooks *hooks);
/* With a configuration; its address is ours. */
struct harness *harness_new_for(const struct vapi_hooks *hooks, const struct config *config);
/* Ends the control plane, and all streams with it; harness_free() does as well. */
void harness_stop(struct harness *h);
void harness_free(struct harness *h);

struct vapi *harness_api(struct harness *h);
struct arena *harness_arena(struct harness *h);
struct store *harness_store(struct harness *h);
/* Runs the loop until *done. */
void harness_run_until(struct harness *h, const bool *done);
void harness_set_time(struct harness *h, int64_t unix_seconds);
/* Bytes the next random requests get instead of random ones; empty: random again. */
void harness_set_random(struct harness *h, struct str bytes);
const struct resource *harness_resource(struct harness *h, const char *group, const char *plural);

/* One request. type NULL: application/json; body NULL: none; headers: "name: value" lines,
 * NULL-ended. */
struct answer ask(struct harness *h, const char *method, const char *path, const char *type,
                  struct str body, const char *const *headers);
/* The same in two halves: others may be sent in between, four at once. */
struct request;
struct request *ask_begin(struct harness *h, const char *method, const char *path, const char *type,
                          struct str body, const char *const *headers);
struct answer ask_end(struct harness *h, struct request *r);
/* Whatever becomes of it: of a stream, after its server closed it. */
void ask_forget(struct harness *h, struct request *r);
struct answer get(struct harness *h, const char *path);
struct answer post(struct harness *h, const char *path, const char *json);
struct answer put(struct harness *h, const char *path, const char *json);
struct answer merge(struct harness *h, const char *path, const char *json);
struct answer delete_(struct harness *h, const char *path, const char *json);
bool has_header(const struct answer *a, const char *line);

/* The stand-ins' state. */
struct standin {
    int refuse_quota;        /* admission_quota answers 403 */
    const char *user_denied; /* authorised nothing */
    bool deny;               /* all; `asked` has what was: "get nodes/metrics cpu-1 " */
    char asked[256];
};
extern struct standin STANDIN;
