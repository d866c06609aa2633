/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * Standing problems that are no reason to stop serving, but that an admin must see: a host that
 * refuses, pool nodes without their taint, stored objects that cannot be read. A notice holds from
 * vapi_notice() to vapi_notice_over(), and a change of its state is reported once, everywhere:
 *
 *   log                  one line when it begins, changes its reason, or ends
 *   Event                of the involved object, once the API serves and its disk takes it
 *   /readyz?verbose      a line per topic with its reasons; /readyz/warnings has the messages
 *   /metrics             sublet_notices{topic,reason}
 *
 * It must never make /readyz fail, hold more than a bounded number, or show a tenant what `detail`
 * holds. */
#pragma once

#include <sublet/json.h>

struct vapi;

enum notice_topic {
    NOTICE_HOST,          /* the dialogue with the host */
    NOTICE_HOST_RIGHTS,   /* what the host does not permit; subject: the resource */
    NOTICE_POOL_NODES,    /* subject: the pool */
    NOTICE_STORED_OBJECT, /* cannot be read; subject: resource and name */
    NOTICE_HOST_OBJECT,   /* in quarantine; subject: plural, namespace and name */
    NOTICE_MEMORY,        /* the budget is used up */
    NOTICE_LEASE,         /* this process does not lead, or cannot tell */
    NOTICE_DISK,          /* full or read-only: writes are refused */
    N_NOTICE_TOPICS
};

/* Beyond these of one topic, a notice is logged and counted, and nothing else. */
#define NOTICES_PER_TOPIC 64

struct vapi_notice {
    enum notice_topic topic;
    struct str subject;    /* which of the topic's; may be empty */
    const char *reason;    /* CamelCase, static: the state */
    struct str message;    /* a tenant may read it: no names or addresses of the host */
    struct str detail;     /* for the log alone; may be empty */
    const cJSON *involved; /* object or reference; NULL: Namespace kube-system */
};
/* Copies everything. The same reason again only replaces the message. */
void vapi_notice(struct vapi *api, const struct vapi_notice *n);
/* Does nothing when there is none. */
void vapi_notice_over(struct vapi *api, enum notice_topic topic, struct str subject);
