/* SPDX-License-Identifier: Apache-2.0 */
/* The socket `<data-dir>/control` on which a running process takes requests of its own commands,
 * and the client of it. Only a user that may open the directory can send one.
 *
 *   backup\n            -> ok\n                 backup.db is there until the client disconnects
 *   WORD LENGTH\nBODY   -> ok LENGTH\nANSWER    by a handler of that word
 *                       -> error: MESSAGE\n */
#pragma once

#include <sublet/store.h>

#define CONTROL_SOCKET "control"
#define CONTROL_BACKUP                                                                             \
    "backup.db" /* in the data directory; removed when the client disconnects                      \
                 */

/* Answers exactly once, now or later; err NULL: body. Both are good until it returns. */
typedef void (*control_answer_cb)(void *answer_ctx, struct str body, const struct err *err);
struct control_handler {
    const char *word; /* NULL ends the list */
    void (*run)(void *ctx, struct str body, control_answer_cb answer, void *answer_ctx);
};

struct control;
/* handlers live as long as it. Errors: STORAGE. Only the process that holds the store may call it.
 */
int control_open(struct uv_loop_s *loop, struct store *store, struct str directory,
                 const struct control_handler *handlers, void *ctx, struct control **ret,
                 struct err *err) MUST_CHECK;
/* Waits for requests under way. */
void control_close(struct control *c, void (*closed)(void *ctx), void *ctx);

struct sockaddr_un;
/* The address of the socket in `path`, which is open as `directory`: addresses are short, so a long
 * path goes by the descriptor. */
void control_address(const char *path, int directory, struct sockaddr_un *ret);

/* --- control_client.c --- */
/* A connection to the process that serves the directory; -1 without an error: there is none. */
int control_connect(const char *directory, struct err *err);
/* One request of a handler and its answer, which stands in the arena. Errors: UNAVAILABLE when no
 * process serves the directory; what the process answers as BAD_REQUEST. */
int control_request(struct arena *a, const char *directory, const char *word, struct str body,
                    struct str *ret, struct err *err) MUST_CHECK;
