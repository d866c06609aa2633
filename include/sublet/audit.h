/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/audit
 *
 * The audit log: a policy as kube-apiserver's selects requests, each becomes an event of
 * audit.k8s.io/v1, and events go to a file that is rotated, or to the standard output. It knows no
 * requests: vapi/api/observe fills the events. Source: k8s.io/apiserver pkg/apis/audit/v1 types.go,
 * pkg/audit. */
#pragma once

#include <sublet/auth.h>

/* In ascending order: each level contains those before it, and more. */
enum audit_level {
    AUDIT_LEVEL_NONE,
    AUDIT_LEVEL_METADATA,
    AUDIT_LEVEL_REQUEST,
    AUDIT_LEVEL_REQUEST_RESPONSE
};
enum audit_stage {
    AUDIT_REQUEST_RECEIVED,
    AUDIT_RESPONSE_STARTED, /* only of long-running requests */
    AUDIT_RESPONSE_COMPLETE,
    AUDIT_PANIC, /* may be in a policy; never happens here */
    AUDIT_N_STAGES
};

/* ---- the policy: immutable, owns its memory ---- */

struct audit_policy;
/* YAML or JSON of kind Policy, at most 1 MiB. BAD_REQUEST names the position: `rules[2].level:
 * ...`; unknown keys are errors. */
int audit_policy_parse(struct str text, struct audit_policy **ret, struct err *err) MUST_CHECK;
struct audit_policy *audit_policy_free(struct audit_policy *p); /* takes NULL, returns NULL */

struct audit_decision {
    enum audit_level level;
    unsigned omit_stages; /* bits: 1 << AUDIT_REQUEST_RECEIVED ... */
    bool omit_managed_fields;
};
/* The first matching rule. user NULL: authentication failed. */
void audit_decide(const struct audit_policy *p, const struct user *user,
                  const struct attributes *what, struct audit_decision *ret);

/* ---- the event ---- */

struct audit_annotation {
    struct str key, value;
};
struct audit_event {
    struct audit_decision decision;
    struct str id, uri, verb, user_agent;
    const struct str *source_ips;
    size_t n_source_ips;
    const struct user *user;         /* NULL: unknown */
    const struct user *impersonated; /* the user acted for; NULL: no impersonation */
    struct str impersonation_constraint;
    bool has_ref; /* a request for a resource */
    struct str resource, ns, name, uid, group, version, revision, subresource;
    int code; /* of the answer; 0: none yet */
    struct str status, reason, message;
    const cJSON *details;                       /* of a response that is a Status; NULL for none */
    struct str request_object, answer_object;   /* JSON; empty for none */
    const struct audit_annotation *annotations; /* printed in order of their keys */
    size_t n_annotations;
    int64_t received_us;
};
/* One line of JSON, with its end. */
void audit_event_print(struct buf *out, const struct audit_event *e, enum audit_stage stage,
                       int64_t stage_us);
/* A copy of an object, list or Table without metadata.managedFields; json itself when it has none,
 * or is no object. */
struct str audit_without_managed_fields(struct arena *a, struct str json);

/* ---- the log: a thread writes lines in batches; the loop never waits for a disk ---- */

struct audit_log;
struct audit_log_options {
    struct str path;      /* "-": the standard output */
    int64_t max_bytes;    /* a file that would grow beyond it is rotated; 0: never */
    int64_t max_backups;  /* rotated files to keep; 0: all of them */
    int64_t max_age_days; /* ... and for how long; 0: for ever */
    size_t buffer_bytes;  /* lines waiting for the disk; further ones are dropped */
    const struct clock *clock;
};
struct audit_log_stats {
    uint64_t written, dropped, failed; /* lines; failed: lost in a write error */
    size_t waiting;                    /* bytes */
};
int audit_log_open(const struct audit_log_options *options, struct audit_log **ret,
                   struct err *err) MUST_CHECK;
/* False when half of the buffer is used: a server that must not act unaudited refuses new requests
 * then, and the other half is for requests in progress. */
bool audit_log_has_room(struct audit_log *log);
void audit_log_write(struct audit_log *log, struct str line);
void audit_log_stats(struct audit_log *log, struct audit_log_stats *ret);
/* Writes waiting lines, for at most five seconds. Takes NULL, returns NULL. */
struct audit_log *audit_log_close(struct audit_log *log);
