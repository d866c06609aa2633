/* SPDX-License-Identifier: Apache-2.0 */
/* A small tenant as DNS sees it, queries to it as strings, and answers as strings. Must never hold
 * state between tests. */
#pragma once

#include "../test.h"

#include "answer.h"

struct world {
    struct arena *arena;
    struct config config;
    struct dns_resolv resolv;
    struct dns_policy policy;
    struct dns_view view;
    struct dns_zone *zone;
    struct dns_ip client; /* who sends the queries */
};

void world_init(struct world *w);
void world_fini(struct world *w);
/* One object as YAML; kind decides where it goes. */
void world_put(struct world *w, const char *yaml);
void world_remove(struct world *w, enum zone_kind kind, const char *ns, const char *name);
/* "A web.team.svc.cluster.local" -> "NOERROR aa\n...records", one line each; "forward NAME to IP"
 * where another server has to be queried. */
const char *world_ask(struct world *w, const char *question);
/* The same as the message a client gets, at most limit bytes. */
struct str world_wire(struct world *w, const char *question, size_t limit);
void world_query(const char *question, struct dns_query *ret);
/* A message as a string: rcode, flags, records with their section ("!" authority, "+" additional).
 */
const char *world_text(struct world *w, struct str wire);
