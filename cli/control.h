/* SPDX-License-Identifier: Apache-2.0 */
/* The socket `<data-dir>/control` on which a running process takes requests of its own commands:
 * one line each, `backup`. Only a user that may open the directory can send one. */
#pragma once

#include <sublet/store.h>

#define CONTROL_SOCKET "control"
#define CONTROL_BACKUP                                                                             \
    "backup.db" /* in the data directory; removed when the client disconnects                      \
                 */

struct control;
/* Errors: STORAGE. Only the process that holds the store may call it. */
int control_open(struct uv_loop_s *loop, struct store *store, struct str directory,
                 struct control **ret, struct err *err) MUST_CHECK;
/* Waits for a backup under way. */
void control_close(struct control *c, void (*closed)(void *ctx), void *ctx);

struct sockaddr_un;
/* The address of the socket in `path`, which is open as `directory`: addresses are short, so a long
 * path goes by the descriptor. */
void control_address(const char *path, int directory, struct sockaddr_un *ret);
