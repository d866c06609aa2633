/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * Grants across tenants, live: watches GPUPools, GPUBindings and the ResourceQuotas of grants, and
 * writes what follows from them and from nodes and pods. Only while the Lease is held: its owner
 * opens it then, and stops it before it is lost. */
#pragma once

#include <sublet/buf.h>
#include <sublet/reflector.h>

struct grants;
struct grants_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host;
    int64_t grace_ms;
    struct reflector *nodes, *pods; /* of the owner, who reports their changes; they outlive it */
    void (*refused)(void *ctx, const struct err *err); /* the host does not let it */
    void *ctx;
};
struct grants *grants_open(const struct grants_options *options);
void grants_changed(struct grants *g); /* takes NULL */
/* What was granted when it was last computed. */
void grants_metrics(const struct grants *g, struct buf *out); /* takes NULL */
/* Sends nothing from now on, nor does it hear of what is under way. */
void grants_stop(struct grants *g); /* takes NULL */
/* After host_stop(); closed() from the loop. */
void grants_close(struct grants *g, void (*closed)(void *ctx), void *ctx);
