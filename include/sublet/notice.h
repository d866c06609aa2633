/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Standing problems that do not prevent serving but need an admin's attention: a host that refuses
 * requests, pool nodes without their taint, stored objects that cannot be read. A notice is active
 * from vapi_notice() to vapi_notice_over(), and a change of its state is reported once, everywhere:
 *
 *   log                  one line when it begins, changes its reason, or ends
 *   Event                of the involved object, once the API serves and its disk accepts it
 *   /readyz?verbose      a line per topic with its reasons; /readyz/warnings has the messages
 *   /metrics             sublet_notices{topic,reason}
 *
 * It must never make /readyz fail, exceed a bounded number, or show a tenant the contents of
 * `detail`. */
#pragma once

#include <sublet/json.h>

struct vapi;

enum notice_topic {
    NOTICE_HOST,          /* requests to the host */
    NOTICE_HOST_RIGHTS,   /* missing permissions on the host; subject: the resource */
    NOTICE_GRANTS,        /* GPUBindings that cannot be followed; subject: its name, or empty */
    NOTICE_POOL_NODES,    /* subject: the pool; empty: unlabelled nodes with devices */
    NOTICE_STORED_OBJECT, /* unreadable; subject: resource and name */
    NOTICE_HOST_OBJECT,   /* in quarantine; subject: plural, namespace and name */
    NOTICE_MEMORY,        /* the memory budget is exhausted */
    NOTICE_LEASE,         /* this process does not lead, or cannot determine it */
    NOTICE_INIT,          /* init.manifests that are not applied */
    NOTICE_DISK,          /* full or read-only: writes are refused */
    N_NOTICE_TOPICS
};

/* Beyond this number per topic, a notice is only logged and counted. */
#define NOTICES_PER_TOPIC 64

struct vapi_notice {
    enum notice_topic topic;
    struct str subject;    /* distinguishes notices of a topic; may be empty */
    const char *reason;    /* CamelCase, static: the state */
    struct str message;    /* shown to tenants: no names or addresses of the host */
    struct str detail;     /* only for the log; may be empty */
    const cJSON *involved; /* object or reference; NULL: Namespace kube-system */
};
/* Copies everything. An unchanged reason only replaces the message. */
void vapi_notice(struct vapi *api, const struct vapi_notice *n);
/* Does nothing when there is none. */
void vapi_notice_over(struct vapi *api, enum notice_topic topic, struct str subject);
