/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The lifecycle of a call: its entry in the list of calls in progress, and the table of functions
 * that the control plane registers, through which lower folders run and answer a call. Must never
 * name one of those functions. */
#pragma once

#include <sys/queue.h>

#include <sublet/admission.h>

#include "core.h"
#include "versions.h"

#define CALL_MAGIC 0xCA11CA11u
/* An arena's limit for one call: the decoders check it (bodies are at most 3 MiB of JSON). */
#define API_CALL_ARENA (256u * 1024 * 1024)

struct admission_call;
struct call_audit;
struct flow;
struct series;

/* Where a call is between its handler and its answer; the exchange may close at any time.
 *
 *   RUNNING -- call_hold() --> ANSWERING -- call_release() --> ANSWERED
 *      |---- finished, cancelled or given up -----------------^
 *      '---- finished in-process --> DELIVERING -- done() --> freed
 *
 * A call from the network is freed when it is ANSWERED and its exchange is closed. */
enum call_stage { CALL_RUNNING, CALL_ANSWERING, CALL_DELIVERING, CALL_ANSWERED };

/* OUTSIDE -> WAITING -> SEATED -> LEFT; a call may skip WAITING, or leave at once. See flow.c. */
enum flow_stage { FLOW_OUTSIDE, FLOW_WAITING, FLOW_SEATED, FLOW_LEFT };

/* The call and its place in the list of calls; callers receive the call. */
struct call_entry {
    struct call call; /* first: a call's address is its entry's */
    TAILQ_ENTRY(call_entry) place;
    uint64_t sequence;
    enum call_stage stage;
    bool exchange_open;
    bool running; /* in-process: call_run() has not returned */
    struct str audit_id;
    bool gzip;
    struct net_header *headers; /* call_header() */
    size_t n_headers;
    const struct store_object *object; /* the object an in-process caller receives */
    struct err *error;
    /* Of an endpoint: the reason Accept cannot be satisfied, or no kind. */
    const struct err *unacceptable;
    /* observe.c; zero for an in-process call */
    int64_t began_us;
    bool observed, long_running;
    int stream_code; /* of a streamed answer that began */
    bool streaming;  /* a complete answer began, and is sent while it is produced */
    struct call_audit *audit;
    struct series *series;        /* of the gauge that counts this call */
    int64_t due_ms, final_due_ms; /* deadline.c; 0: never */
    /* flow.c */
    struct flow *flow;
    TAILQ_ENTRY(call_entry) in_queue;
    struct str flow_uid, level_uid;
    void (*run)(void *ctx);
    void *run_ctx;
    uint64_t queued_us;              /* when it was queued; afterwards for how long */
    size_t answer_bytes, body_bytes; /* answer_bytes: while it waits */
    enum flow_stage flow_stage;
    bool mutating;
    size_t reserved; /* budget.c */
    /* Of a write whose object a webhook converts: what commit stores, but for its revision, NULL:
     * the object itself; and its versions that managers of fields, and admission, see. */
    const cJSON *stored_form;
    struct versions of_managers, of_admission;
};

/* Takes over the call, its body decoded into c->body, and answers it exactly once. */
typedef void (*call_handler)(struct call *c);
/* Functions of higher folders that run and answer calls. */
struct call_handlers {
    call_handler verbs[CALL_N_VERBS];          /* of objects and their status */
    call_handler subresources[N_SUBRESOURCES]; /* SUB_STATUS: none */
    call_handler measured;                     /* reads of what is not stored */
    /* Non-resource endpoints, ended by NULL: true when path was handled, and answered. */
    bool (*const *endpoints)(struct call *c, struct str path);
    /* Of a version that is not served here: true when c is answered, or will be. */
    bool (*elsewhere)(struct call *c, struct str group, struct str version);
    /* Replaces the handler of a write that must wait or is refused; NULL: keeps it. */
    call_handler (*instead)(const struct call *c);
    /* The answers of call.h. */
    void (*error)(struct call *c, const struct err *err);
    void (*give_up)(struct call *c, const struct err *err, struct str status);
    void (*tree)(struct call *c, int status, cJSON *object);
    void (*raw)(struct call *c, int status, struct str content_type, struct str body);
    void (*annotate)(struct call *c, struct str key, struct str value);
    void (*ended)(struct call *c); /* right before it is freed */
};

/* call.c */
struct call *call_new(struct vapi *api);
struct call_entry *call_entry(struct call *c);
/* An in-process call as `user`, which must outlive it; answers go to done(). */
struct call *call_inside(struct vapi *api, const struct user *user, enum call_verb verb,
                         const struct resource *r, const struct subresource *sub, struct str ns,
                         struct str name, vapi_done_cb done, void *ctx);
/* The admission of c as operation. */
void call_admission(struct call *c, enum admission_operation operation, struct admission_call *ret);
/* After a pause for admission: -1 when the client has gone or the API closes; nothing is stored
 * then. */
int call_check_over(const struct call *c, struct err *err) MUST_CHECK;
/* Do the tenant's webhooks see this write: a client's, or what a controller creates? */
bool call_has_webhooks(const struct call *c);
/* The group, version and kind a body of this call must have (the subresource's where it has one).
 */
void call_body_expected(const struct call *c, struct str *group, struct str *version,
                        struct str *kind);
void call_run(struct call *c); /* the handler of its verb and subresource */
void call_exchange_closed(void *ctx);
void call_exchange_drained(void *ctx);
/* A copy in a of err and all it points to. */
struct err *call_keep_error(struct arena *a, const struct err *err);
/* Around handing an answer to the network, which may close the exchange at once. Nothing may be
 * held twice. */
void call_hold(struct call *c);
void call_release(struct call *c);
void call_enter(struct call_entry *e, enum call_stage to);
/* The handler is done with c. An in-process caller receives err or object (a reference is
 * taken). */
void call_finish(struct call *c, const struct err *err, const struct store_object *object);
/* Answers a call whose handler has not answered: it is released, or its handler continues and its
 * answer is dropped. status: a complete Status, sent in place of err unless empty. */
void call_give_up(struct call *c, const struct err *err, struct str status);

/* read_only.c: call_handlers.instead */
call_handler read_only_handler(const struct call *c);
