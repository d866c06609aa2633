/* SPDX-License-Identifier: Apache-2.0
 * room: vapi (private to vapi)
 *
 * The life of the control plane; api_enter() moves it on. A failed start stays STARTING until it is
 * closed. Which writes are answered meanwhile is not part of it: read_only.h.
 *
 *   NEW --vapi_start()--> STARTING --bootstrapped, listening--> SERVING
 *    |                        |                                    |
 *    '------------------------+-----------vapi_close()-------------'
 *                             v
 *       DRAINING --network, controllers closed--> STOPPING --CRDs, calls, handles closed--> CLOSED
 */
#pragma once

struct vapi;

enum api_state {
    API_NEW,
    API_STARTING,
    API_SERVING,
    API_DRAINING,
    API_STOPPING,
    API_CLOSED,
    N_API_STATES
};

/* The only function that changes api->state; asserts that the transition is permitted. */
void api_enter(struct vapi *api, enum api_state to);
