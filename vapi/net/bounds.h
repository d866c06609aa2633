/* SPDX-License-Identifier: Apache-2.0
 * room: vapi/net (private)
 *
 * What bounds a server, its connections and their exchanges, besides the caller's options. */
#pragma once

#define NET_RECORD      16384u              /* plain bytes of one TLS record */
#define NET_READ        65536u              /* one read from the kernel */
#define NET_OUT_HIGH    65536u              /* a connection makes no more frames above this */
#define NET_BACKLOG_MAX (64u << 20)         /* a longer backlog aborts the exchange */
#define NET_BODIES_MAX  (64u << 20)         /* request bodies of the whole server; beyond it 429 */
#define NET_HEADS_MAX   (64u << 20)         /* headers of unanswered requests, likewise; */
#define NET_HEAD_LIGHT  (8u << 10)          /* half of it is reserved for requests below this */
#define NET_ARENA_LIMIT ((size_t)128 << 20) /* of one request */
#define NET_HELD_MAX    (4 * NET_READ)      /* bytes read but not yet parsed */
#define NET_HEADER_COST 32u  /* per header, beside its name and value, as RFC 9113 6.5.2 counts */
#define NET_MIN_RATE    500  /* bytes per second an announced body must average */
#define NET_LINGER_MS   2000 /* for a closing connection's peer to read the last bytes */
