/* SPDX-License-Identifier: Apache-2.0 */
/* What the network (wire.c) and the host's API server (server.c) share. */
#pragma once

#include "host/transport.h"
#include "wire.h"

/* What was sent: it lives for as long as it may be executed, whoever waits for it. */
struct request {
    struct wires *wires;
    struct wire *wire; /* NULL: its client no longer waits */
    unsigned refs;
    char method[8];
    char *path, *query;
    struct str body;
    bool lose, truncate, is_late, answered;
    bool metadata_only; /* the client accepts PartialObjectMetadata */
    unsigned sender;
    unsigned age; /* of the world, when it was sent */
    int64_t sent_us;
    char status_text[256];
};

/* Who waits for an answer, or watches. */
struct wire {
    struct wire *next;
    struct line *line;
    struct request *request;
    struct wire_handler handler;
    bool watching, labelled, feeding;
    char *plural;
    uint64_t from;   /* events of later revisions are sent */
    size_t position; /* in the host's events */
};

/* One client's way. */
struct line {
    struct transport base;
    unsigned sender;
    struct line *next;
    struct wires *wires;
    struct wire *wires_first;
    bool dead;
    void (*closed)(void *ctx);
    void *ctx;
};

/* A list that is read page by page: as it was at the first. */
struct pages {
    struct pages *next;
    unsigned id;
    uint64_t revision;
    char **items;
    size_t n;
};

struct wires {
    struct wires_options o;
    struct wire_faults faults;
    unsigned counts[N_WIRE_COUNTS];
    struct line *lines;
    struct pages *pages;
    unsigned n_pages;
    unsigned age, sender;
    bool earlier;    /* the request that is executed was sent in another age */
    int64_t sent_us; /* when that was */
};

void server_execute(struct request *q);
/* As the request's client wants it, in lists and watches. */
struct str request_form(const struct request *q, struct arena *a, struct str bytes);
void request_answer(struct request *q, int status, struct str body);
void request_refuse(struct request *q, int status, const char *reason);
void wire_end(struct wire *wire, int status, enum host_trouble trouble, const char *failure);
void wire_feed_soon(struct wire *wire);
bool wire_fault(struct wires *w, unsigned of_thousand, enum wire_count which);
