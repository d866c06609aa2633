/* SPDX-License-Identifier: Apache-2.0
 * room: vapi
 *
 * The kernel's figures about this process, with the names of Prometheus' own client libraries. It
 * must be read only for a scrape. */
#include "observe.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* The columns of /proc/self/stat after the name in brackets, from `state`. Source: proc(5). */
enum { STAT_UTIME = 11, STAT_STIME = 12, STAT_START = 19, STAT_VSIZE = 20, STAT_RSS = 21 };
#define STAT_COLUMNS 22

static size_t read_text(const char *path, char *out, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, room);

    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

static bool read_stat(uint64_t columns[STAT_COLUMNS])
{
    char text[1024];
    struct str rest = {text, read_text("/proc/self/stat", text, sizeof(text))};
    size_t name_end = str_rfind(rest, ')');

    if (name_end + 2 >= rest.n)
        return false;
    rest = str_from(rest, name_end + 2);
    for (size_t i = 0; i < STAT_COLUMNS; i++) {
        columns[i] = 0;
        str_to_u64(str_trim(str_cut(&rest, ' ')), &columns[i]);
    }
    return true;
}

static uint64_t count_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    uint64_t n = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* the directory itself */
}

static int64_t boot_seconds(void)
{
    struct sysinfo info;

    return sysinfo(&info) ? 0 : clock_wall_s(&CLOCK_SYSTEM) - info.uptime;
}

void metrics_process(struct buf *out)
{
    double ticks = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
    uint64_t stat[STAT_COLUMNS];
    struct rlimit files;

    metrics_single(out, METRIC_PROCESS_OPEN_FDS, (double)count_files());
    if (!getrlimit(RLIMIT_NOFILE, &files))
        metrics_single(out, METRIC_PROCESS_MAX_FDS, (double)files.rlim_cur);
    if (!read_stat(stat))
        return;
    metrics_single(out, METRIC_PROCESS_CPU_SECONDS,
                   (double)(stat[STAT_UTIME] + stat[STAT_STIME]) / ticks);
    metrics_single(out, METRIC_PROCESS_RESIDENT_BYTES, (double)stat[STAT_RSS] * page);
    metrics_single(out, METRIC_PROCESS_VIRTUAL_BYTES, (double)stat[STAT_VSIZE]);
    metrics_single(out, METRIC_PROCESS_START,
                   (double)boot_seconds() + (double)stat[STAT_START] / ticks);
}
