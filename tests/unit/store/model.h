/* SPDX-License-Identifier: Apache-2.0
 * A brute-force model of a store: the whole state of every revision, in arrays. Keys are numbered
 * in their order, ns "n<k / 8>" and name "k<k % 8>". */
#pragma once

#include "harness.h"

#define MODEL_KEYS  32
#define MODEL_STEPS 4096

struct model_version {
    int64_t revision; /* 0: absent */
    int value;
};

struct model {
    unsigned seed;
    struct model_version now[MODEL_KEYS];
    struct model_version then[MODEL_STEPS][MODEL_KEYS]; /* by revision */
    struct {
        enum store_event_type type;
        int key; /* -1: no such revision */
    } events[MODEL_STEPS];
};

unsigned model_random(struct model *m, unsigned below);
void model_key(int key, char ns[8], char name[8]);
/* One random write to store and model alike; false when the model is full. */
bool model_step(struct model *m, struct fixture *f);
/* Forgets the writes after `revision`: they failed. */
void model_forget(struct model *m, struct fixture *f, int64_t revision);
/* Compares gets, scans of all kinds of ranges at revision (0: now), and watches from it. */
void model_check_state(struct model *m, struct fixture *f, int64_t revision);
void model_check_watch(struct model *m, struct fixture *f, int64_t from);
/* All revisions that can be had, and the errors for those that cannot. */
void model_check_all(struct model *m, struct fixture *f);
