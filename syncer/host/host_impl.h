/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What the reflector takes from the client (its loop, clock and waiting times), and pipes. */
#pragma once

#include <sublet/host.h>

const struct host_options *host_get_options(const struct host *h);
/* A pipe is about to open: one request of the rate, one of the number of pipes. NULL: it may not.
 */
struct transport *host_pipe_enter(struct host *h, struct err *err);
void host_pipe_left(struct host *h);
