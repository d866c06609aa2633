/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * A coordination.k8s.io/v1 Lease, as client-go's leader election keeps it: held while a renewal was
 * answered recently, by our own clock. */
#pragma once

#include <sublet/host.h>

struct fleet_lease;
struct fleet_lease_options {
    struct uv_loop_s *loop;
    const struct clock *clock;
    struct host *host;
    struct str host_namespace, name;
    struct str identity; /* of one process at a time: a Lease with it is ours */
    int64_t duration_ms;
    void (*held)(void *ctx);                       /* once */
    void (*waiting)(void *ctx, struct str holder); /* each time another holder is seen */
    /* It was not renewed in time, another process has it, or the host refuses. Once, and the
     * last. */
    void (*lost)(void *ctx, const struct err *err);
    void *ctx;
};
struct fleet_lease *fleet_lease_new(const struct fleet_lease_options *options);
/* Gives it up, so that the next process need not wait; done() from the loop, within a second. */
void fleet_lease_release(struct fleet_lease *l, void (*done)(void *ctx), void *ctx);
/* After host_stop(): closes on the loop. */
void fleet_lease_close(struct fleet_lease *l);
