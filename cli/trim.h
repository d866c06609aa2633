/* SPDX-License-Identifier: Apache-2.0 */
/* Gives free memory back to the kernel when the loop has become quiet. */
#pragma once

struct uv_loop_s;
struct trim;

/* `release` runs once after the start and once after every burst, of turns of the loop or of bytes
 * freed (mem_freed()), when few of either happened during `quiet_ms`. Owns two handles of the loop,
 * which do not keep it alive. */
struct trim *trim_new(struct uv_loop_s *loop, unsigned quiet_ms, void (*release)(void));
/* Frees it once the loop has closed its handles. */
void trim_close(struct trim *t);
