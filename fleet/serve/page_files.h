/* SPDX-License-Identifier: Apache-2.0
 * room: fleet (private)
 *
 * The files of page/, as the build writes them into the program (page/embed.py). */
#pragma once

#include <stddef.h>

struct fleet_page_file {
    const char *path, *type, *bytes; /* path: of the request; bytes: n of them */
    size_t n;
};
extern const struct fleet_page_file FLEET_PAGE_FILES[];
extern const size_t FLEET_PAGE_N_FILES;
