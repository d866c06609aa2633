/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects as a hostile tenant would write them, drawn from a seed: the types of the API say which
 * fields there are, so that no field is forgotten; dictionaries say what stands in them. */
#pragma once

#include <sublet/json.h>

struct generator {
    struct arena *arena;
    uint64_t state;
    unsigned char *reached; /* of SCHEMA_BUILTIN.n_fields: fields ever written */
};

uint64_t generator_next(struct generator *g);
/* A number below n. */
uint64_t generator_below(struct generator *g, uint64_t n);
/* A whole object of a kind of core/v1, with name, namespace and uid. */
cJSON *generate_object(struct generator *g, const char *kind);
/* The fields below spec of a kind that were never written, one a line, added to b; returns how many
 * there are in all. */
size_t generator_missed(const struct generator *g, const char *kind, struct buf *b);
