/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's process: the product itself on a loop of its own. */
#pragma once

#include "world.h"

struct life {
    struct world *world;
    struct disk *disk;
    struct config config; /* the world's, with this life's directory */
    uv_loop_t loop;
    struct store *store;
    struct pki *pki;
    struct vapi *api;
    struct syncer *syncer;
    struct transport *line;
    struct store_watch *watch;
    bool disk_was_full; /* when its events were read last */
    bool ready, dead, power, started, closing, closed;
    unsigned index, number;
    int64_t first; /* the revision from which it serves */
    struct executor executor;
};
/* Starts a process on a disk. It may die at once; ready says when it serves. */
struct life *life_start(struct world *w, struct disk *disk, unsigned index);
/* It is gone this instant, with or without the machine's power. Its disk stays. */
void life_kill(struct life *l, bool power);
/* After so many disk operations. */
void life_kill_later(struct life *l, unsigned operations, bool power);
/* In order. Runs until it is done. */
void life_stop(struct life *l);
bool life_serves(const struct life *l);
