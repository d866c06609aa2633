/* SPDX-License-Identifier: Apache-2.0 */
/* A disk without room: what cannot be stored is tried again, later and later. */
#include "worlds.h"

#include <sublet/store_disk.h>

#include "../unit/store/fault_vfs.h"
#include "core/lease.h"
#include "engine.h"

enum { WAIT_MS = 1000, MOST_RETRIES = 20 }; /* 5 ms, 10 ms, ...: 8 of them in that time */

static bool is_on_host(struct sim *s)
{
    return fake_host_count(s->host, "services") == 1;
}

static uint64_t retries(struct sim *s)
{
    struct worker_stats stats;

    controller_stats(s->syncer->controllers[SYNC_SERVICES], &stats);
    return stats.retries;
}

/* The log has room for deletes, since the reserve was given up, and the file has none. */
static void fill_disk(struct sim *s)
{
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_FULL, 0, 1);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'}}");
    sim_writes_done(s);
    fault_arm(FAULT_WRITE, FAULT_MAIN, FAULT_FULL, 0, -1);
    assert_int_equal(store_disk(s->store), STORE_DISK_FULL);
}

/* The run of a Service writes its status, which is refused. That run must not add its own key: it
 * would run again at once, and again, for as long as the disk is full. */
static void test_refused_status_backs_off(void **state)
{
    struct sim *s = sim_new_ready(1, NULL);
    struct str name;
    uint64_t before;

    (void)state;
    sim_create(s, "services", "default",
               "{'metadata':{'name':'s'},'spec':{'type':'LoadBalancer','ports':[{'port':80}]}}");
    sim_writes_done(s);
    sim_until(s, is_on_host, "the Service on the host");
    sim_run_ms(s, 500);
    name = json_str_at(json_first(fake_host_list(s->host, s->arena, "services")), "metadata.name");

    fill_disk(s);
    before = retries(s);
    fake_host_patch(s->host, "services", arena_cstr(s->arena, name),
                    "{\"status\":{\"loadBalancer\":{\"ingress\":[{\"ip\":\"192.0.2.1\"}]}}}");
    sim_run_ms(s, WAIT_MS);
    assert_in_range(retries(s) - before, 1, MOST_RETRIES);
    assert_int_equal(store_disk(s->store), STORE_DISK_FULL);
    fault_disarm();
    sim_free(s);
}

static bool leads(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_HELD;
}

static bool is_away(struct sim *s)
{
    return sync_lease_state(s->syncer->lease) == LEASE_AWAY;
}

static bool has_room(struct sim *s)
{
    return store_disk(s->store) == STORE_DISK_WRITABLE;
}

static bool has_decided(struct sim *s)
{
    return leads(s) || sync_lease_state(s->syncer->lease) == LEASE_SUPERSEDED;
}

/* A process whose turn could not be recorded leads without one, and writes once there is room. The
 * next process goes on with its data, which is no older copy. */
static void test_data_led_without_a_turn_goes_on(void **state)
{
    struct sim *s = sim_new_ready(2, NULL);
    int64_t revision;

    (void)state;
    sim_until(s, leads, "the Lease");
    sim_close(s);
    fake_host_faults(s->host)->down = true;
    sim_open(s);
    sim_until(s, is_away, "that the host is away");
    sim_run_ms(s, 200); /* where the turn before ended is on record */
    fault_arm(FAULT_WRITE, FAULT_LOG, FAULT_FULL, 0, -1);
    fake_host_faults(s->host)->down = false;
    sim_until(s, leads, "the Lease, without room");
    assert_false(has_room(s));
    fault_disarm();
    sim_until(s, has_room, "room");
    revision = store_revision(s->store);
    sim_create(s, "configmaps", "default", "{'metadata':{'name':'m'}}");
    sim_writes_done(s);
    assert_true(store_revision(s->store) > revision);
    sim_close(s);
    sim_open(s);
    sim_until(s, has_decided, "who leads");
    assert_true(leads(s));
    sim_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused_status_backs_off),
                                       cmocka_unit_test(test_data_led_without_a_turn_goes_on)};

    fault_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
