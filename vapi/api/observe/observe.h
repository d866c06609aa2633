/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * Audit events and counters of requests. One call is reported at most four times, in this order;
 * in-process calls never are.
 *
 *   observe_begin -> observe_attributes -> observe_answer  (a complete answer)  -> observe_end
 *                                       '> call_streams    (a streamed one)    ---^ */
#pragma once

#include <sublet/audit.h>
#include <sublet/metrics.h>

#include "../../core/calls.h"
#include "../../core/target.h"

/* observe.c */
void observe_begin(struct call *c);
/* The user is known (NULL: authentication failed with err), and the attributes. -1: must not be
 * served, because it cannot be audited. */
int observe_attributes(struct call *c, const struct target *t, const struct user *user,
                       struct err *err) MUST_CHECK;
/* The answer as sent, before compression. */
void observe_answer(struct call *c, int status, struct str content_type,
                    const struct net_slice *body, size_t n);
void observe_end(struct call *c);
/* Watch, proxy, exec, logs: no deadline, no seat, audited at their beginning and end. */
bool observe_long_running(const struct call *c, const struct target *t);

/* audit.c; all functions do nothing for a call that is not audited. */
struct api_audit;
int audit_open(struct vapi *api, struct err *err) MUST_CHECK; /* by the configuration */
void audit_close(struct vapi *api);
int audit_attributes(struct call *c, const struct target *t, const struct user *user,
                     struct err *err) MUST_CHECK;
void audit_authorized(struct call *c, bool allowed, struct str reason);
/* The request object, once it is decoded; the first one stays. */
void audit_request(struct call *c, const cJSON *object);
/* A tree that is the answer, in whatever form it will be printed. */
void audit_answer_tree(struct call *c, const cJSON *tree);
void audit_answer(struct call *c, int status, struct str content_type, const struct net_slice *body,
                  size_t n);
/* A list that is never a tree as a whole: whether its event includes it; how long its JSON may be;
 * a row of it ({"items":[row]}) in the event's form; the JSON; or that it is too long. */
bool audit_wants_answer(const struct call *c);
size_t audit_most_bytes(void);
struct str audit_answer_row(struct call *c, struct arena *a, const cJSON *around);
void audit_answer_text(struct call *c, struct str json);
void audit_answer_left_out(struct call *c);
void audit_stream(struct call *c, int status);
void audit_annotate(struct call *c, struct str key, struct str value);
void audit_end(struct call *c);
void audit_metrics(struct vapi *api, struct buf *out);

/* metrics.c */
struct api_metrics;
struct api_metrics *api_metrics_free(struct api_metrics *m);
/* A request ended: its code, its duration, and its time in a queue. */
void metrics_request(struct call *c, int code, int64_t took_us, int64_t waited_us);
void metrics_long_running(struct call *c, int by);
bool metrics_handle(struct call *c, struct str path);

/* devices.c */
bool metrics_handle_devices(struct call *c, struct str path);

/* metrics_process.c */
void metrics_process(struct buf *out);
