/* SPDX-License-Identifier: Apache-2.0
 * room: syncer (private to syncer/host)
 *
 * What the reflector takes from the client: its loop, clock and waiting times. */
#pragma once

#include <sublet/host.h>

const struct host_options *host_get_options(const struct host *h);
