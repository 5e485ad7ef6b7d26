#pragma once
#pragma GCC diagnostic ignored "-Wunused-function"
/* Real ZooKeeper servers for tests: started in temporary directories at a loopback address of their
 * own, and stopped with the test, whatever becomes of it. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"

enum {
    ZK_MEMBERS_MAX = 3,
    ZK_START_MS = 60000,
    /* Of the first member; the others have the next ones. */
    ZK_CLIENT_PORT = 2181,
    ZK_PEER_PORT = 2881,
    ZK_ELECTION_PORT = 3881,
};

struct zk_member {
    pid_t pid;
    /* Its address, and the process in whose network it runs (0: in the test's). */
    char host[24];
    pid_t network;
    int client_port;
    int peer_port;
    int election_port;
};

struct zk_ensemble {
    char dir[64];
    int count;
    struct zk_member members[ZK_MEMBERS_MAX];
};

static bool
zk_is_installed(void)
{
    return access("/usr/share/java/zookeeper.jar", R_OK) == 0;
}

static void
zk_write_config(const struct zk_ensemble *ensemble, int index)
{
    char path[128];
    const struct zk_member *member = &ensemble->members[index];
    snprintf(path, sizeof(path), "%s/%d", ensemble->dir, index);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%d/data", ensemble->dir, index);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%d/zk.cfg", ensemble->dir, index);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "tickTime=200\ninitLimit=50\nsyncLimit=5\nminSessionTimeout=400\n"
            "maxSessionTimeout=60000\ndataDir=%s/%d/data\nclientPort=%d\n"
            "clientPortAddress=%s\nadmin.enableServer=false\n"
            "4lw.commands.whitelist=ruok,srvr,stat,mntr,cons,wchs,dump,conf,isro\n"
            "maxClientCnxns=0\n",
            ensemble->dir, index, member->client_port, member->host);
    if (ensemble->count > 1) {
        fprintf(file, "quorumListenOnAllIPs=false\n");
        for (int i = 0; i < ensemble->count; i++) {
            const struct zk_member *peer = &ensemble->members[i];
            fprintf(file, "server.%d=%s:%d:%d\n", i + 1, peer->host, peer->peer_port,
                    peer->election_port);
        }
        snprintf(path, sizeof(path), "%s/%d/data/myid", ensemble->dir, index);
        FILE *id = fopen(path, "w");
        fprintf(id, "%d\n", index + 1);
        fclose(id);
    }
    fclose(file);
}

/* Moves this process into the network of another; 0: it stays. */
static bool
zk_enter_network(pid_t network)
{
    char path[32];
    if (network == 0) {
        return true;
    }
    snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)network);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_in = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
    close(fd);
    return is_in;
}

static void
zk_start_member(struct zk_ensemble *ensemble, int index)
{
    char config[128];
    char log[128];
    snprintf(config, sizeof(config), "%s/%d/zk.cfg", ensemble->dir, index);
    snprintf(log, sizeof(log), "%s/%d/log", ensemble->dir, index);
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        if (!zk_enter_network(ensemble->members[index].network)) {
            _exit(126);
        }
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execlp("java", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-Xshare:auto", "-cp", "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar",
               "org.apache.zookeeper.server.quorum.QuorumPeerMain", config, (char *)NULL);
        _exit(127);
    }
    ensemble->members[index].pid = pid;
}

/* The answer to `srvr`, or nothing while the member does not serve: it says "Mode: ..." then. */
static void
zk_ask(const struct zk_member *member, char *text, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)member->client_port)};
    struct timeval limit = {0, 150000};
    size_t got = 0;
    inet_pton(AF_INET, member->host, &address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    /* A host that is cut off answers nothing: this limits the attempt to connect. */
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        write(fd, "srvr", 4) == 4) {
        ssize_t part;
        while (got < size - 1 && (part = read(fd, text + got, size - 1 - got)) > 0) {
            got += (size_t)part;
        }
    }
    text[got] = '\0';
    close(fd);
}

/* Waits until the member serves. A member that boots answers nothing and closes nothing, so it is
 * asked anew after a short time. */
static void
zk_wait_member(const struct zk_ensemble *ensemble, int index)
{
    char text[1024];
    uint64_t start = sl_clock_mono_ms(sl_clock_system());
    do {
        if (sl_clock_mono_ms(sl_clock_system()) - start > ZK_START_MS) {
            fail_msg("ZooKeeper member %d does not serve; see %s/%d/log", index, ensemble->dir,
                     index);
        }
        poll(NULL, 0, 20);
        zk_ask(&ensemble->members[index], text, sizeof(text));
    } while (strstr(text, "Mode: ") == NULL);
}

/* Waits until a member that runs leads, and gives its number. */
static int
zk_leader(const struct zk_ensemble *ensemble)
{
    char text[1024];
    uint64_t start = sl_clock_mono_ms(sl_clock_system());
    for (int i = 0; sl_clock_mono_ms(sl_clock_system()) - start <= ZK_START_MS;
         i = (i + 1) % ensemble->count) {
        if (ensemble->members[i].pid != 0) {
            zk_ask(&ensemble->members[i], text, sizeof(text));
            if (strstr(text, "Mode: leader") != NULL) {
                return i;
            }
        }
    }
    fail_msg("no ZooKeeper member leads; see %s", ensemble->dir);
    return -1;
}

/* Chooses a folder, addresses and ports. No other process has this address, so that a member may
 * have its port again whoever got a port meanwhile. */
static void
zk_prepare(struct zk_ensemble *ensemble, int count)
{
    memset(ensemble, 0, sizeof(*ensemble));
    unit_folder_new(ensemble->dir, sizeof(ensemble->dir));
    ensemble->count = count;
    for (int i = 0; i < count; i++) {
        struct zk_member *member = &ensemble->members[i];
        unsigned pid = (unsigned)getpid();
        snprintf(member->host, sizeof(member->host), "127.%u.%u.%u", 64 + (pid >> 16 & 63),
                 pid >> 8 & 255, pid & 255);
        member->client_port = ZK_CLIENT_PORT + i;
        member->peer_port = ZK_PEER_PORT + i;
        member->election_port = ZK_ELECTION_PORT + i;
    }
}

static void
zk_start_prepared(struct zk_ensemble *ensemble)
{
    int count = ensemble->count;
    for (int i = 0; i < count; i++) {
        zk_write_config(ensemble, i);
        zk_start_member(ensemble, i);
    }
    for (int i = 0; i < count; i++) {
        zk_wait_member(ensemble, i);
    }
}

static void
zk_start(struct zk_ensemble *ensemble, int count)
{
    zk_prepare(ensemble, count);
    zk_start_prepared(ensemble);
}

static void
zk_signal(const struct zk_ensemble *ensemble, int index, int signal)
{
    kill(ensemble->members[index].pid, signal);
}

static void
zk_kill_member(struct zk_ensemble *ensemble, int index)
{
    struct zk_member *member = &ensemble->members[index];
    if (member->pid != 0) {
        kill(member->pid, SIGKILL);
        waitpid(member->pid, NULL, 0);
        member->pid = 0;
    }
}

static int
zk_remove_entry(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void
zk_stop(struct zk_ensemble *ensemble)
{
    for (int i = 0; i < ensemble->count; i++) {
        zk_kill_member(ensemble, i);
    }
    nftw(ensemble->dir, zk_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* "host:port,..." of all members. */
static void
zk_hosts(const struct zk_ensemble *ensemble, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < ensemble->count; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s:%d", i > 0 ? "," : "",
                                 ensemble->members[i].host, ensemble->members[i].client_port);
    }
}
