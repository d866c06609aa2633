/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of PersistentVolumes and their claims. Internal to vapi/kinds. */
#pragma once

#include "../rules/kind.h"

void cell_modes(const struct row *r, const struct column *c);
void cell_class(const struct row *r, const struct column *c);
void cell_phase(const struct row *r, const struct column *c);
