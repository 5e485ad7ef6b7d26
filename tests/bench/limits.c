/*
 * What this machine can do at all, for scripts/bench to divide by: a program without the engine.
 *
 *     limits MILLISECONDS NAME ...      prints "NAME VALUE" for each; see `measures` for the names
 *
 * Each figure is the best of several rounds that together take about that many milliseconds.
 */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_SLOTS = 4096,
    /* Items between two publications of a ring, as in a batch. */
    RING_STEP = 16,
    RECORD_BYTES = 56,
    RECORDS = 1024,
};

static uint64_t
now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Keeps the compiler from dropping what is computed. */
static volatile uint64_t sink;

/* ---- memory ---------------------------------------------------------------------------------- */

static double
copy_rate(size_t bytes, int times)
{
    static uint8_t *from;
    static uint8_t *to;
    static size_t size;
    if (size < bytes) {
        from = realloc(from, bytes);
        to = realloc(to, bytes);
        if (from == NULL || to == NULL) {
            exit(1);
        }
        memset(from, 1, bytes);
        memset(to, 2, bytes);
        size = bytes;
    }
    uint64_t start = now_ns();
    for (int i = 0; i < times; i++) {
        memcpy(to, from, bytes);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return (double)bytes * times / ((double)(now_ns() - start) / 1e9);
}

static double
memory_copy(void)
{
    return copy_rate((size_t)32 << 20, 1);
}

static double
cache_copy(void)
{
    return copy_rate((size_t)64 << 10, 500);
}

/* ---- rings between two threads ----------------------------------------------------------------
 */

struct ring {
    _Alignas(64) uint64_t head;
    _Alignas(64) uint64_t tail;
    _Alignas(64) uint8_t items[RING_SLOTS][64];
    size_t item_bytes;
    uint64_t count;
};

static struct ring ring;

static inline void
relax(unsigned *spins)
{
    /* On a busy machine the other thread may need this core. */
    if (++*spins % 4096 == 0) {
        sched_yield();
    }
}

static void *
ring_consume(void *arg)
{
    (void)arg;
    uint64_t sum = 0;
    unsigned spins = 0;
    for (uint64_t at = 0; at < ring.count;) {
        uint64_t head = __atomic_load_n(&ring.head, __ATOMIC_ACQUIRE);
        if (head == at) {
            relax(&spins);
            continue;
        }
        for (; at < head; at++) {
            uint64_t word;
            memcpy(&word, ring.items[at % RING_SLOTS], sizeof(word));
            sum += word;
        }
        __atomic_store_n(&ring.tail, at, __ATOMIC_RELEASE);
    }
    sink = sum;
    return NULL;
}

static double
ring_rate(size_t item_bytes)
{
    uint8_t item[64] = {1};
    pthread_t consumer;
    ring.head = 0;
    ring.tail = 0;
    ring.item_bytes = item_bytes;
    ring.count = 1u << 20;
    uint64_t start = now_ns();
    if (pthread_create(&consumer, NULL, ring_consume, NULL) != 0) {
        exit(1);
    }
    unsigned spins = 0;
    for (uint64_t at = 0; at < ring.count; at += RING_STEP) {
        while (at + RING_STEP - __atomic_load_n(&ring.tail, __ATOMIC_ACQUIRE) > RING_SLOTS) {
            relax(&spins);
        }
        for (uint64_t i = at; i < at + RING_STEP; i++) {
            if (item_bytes == 8) {
                memcpy(ring.items[i % RING_SLOTS], item, 8);
            } else {
                memcpy(ring.items[i % RING_SLOTS], item, 64);
            }
        }
        __atomic_store_n(&ring.head, at + RING_STEP, __ATOMIC_RELEASE);
    }
    pthread_join(consumer, NULL);
    return (double)ring.count / ((double)(now_ns() - start) / 1e9);
}

static double
ring_8(void)
{
    return ring_rate(8);
}

static double
ring_64(void)
{
    return ring_rate(64);
}

/* ---- round trips between two threads ----------------------------------------------------------
 */

enum { SPIN_TRIPS = 20000, BLOCK_TRIPS = 1000 };

struct trips {
    _Alignas(64) uint32_t ping;
    _Alignas(64) uint32_t pong;
    uint32_t count;
    bool does_block;
};

static struct trips trips;

static void
word_set(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    if (trips.does_block) {
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static void
word_await(uint32_t *word, uint32_t value)
{
    unsigned spins = 0;
    uint32_t seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) != value) {
        if (trips.does_block) {
            syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        } else {
            relax(&spins);
        }
    }
}

static void *
trips_answer(void *arg)
{
    (void)arg;
    for (uint32_t i = 1; i <= trips.count; i++) {
        word_await(&trips.ping, i);
        word_set(&trips.pong, i);
    }
    return NULL;
}

static int
compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* The median, in seconds: a trip now and then waits for a core that somebody else has. */
static double
trip_time(uint32_t count, bool does_block)
{
    static uint64_t times[SPIN_TRIPS];
    pthread_t other;
    trips = (struct trips){.count = count, .does_block = does_block};
    if (pthread_create(&other, NULL, trips_answer, NULL) != 0) {
        exit(1);
    }
    for (uint32_t i = 1; i <= count; i++) {
        uint64_t start = now_ns();
        word_set(&trips.ping, i);
        word_await(&trips.pong, i);
        times[i - 1] = now_ns() - start;
    }
    pthread_join(other, NULL);
    qsort(times, count, sizeof(times[0]), compare);
    return (double)times[count / 2] / 1e9;
}

static double
trip_spin(void)
{
    return trip_time(SPIN_TRIPS, false);
}

static double
trip_block(void)
{
    return trip_time(BLOCK_TRIPS, true);
}

/* ---- records and calls ------------------------------------------------------------------------
 */

struct record {
    int32_t len;
    int32_t anchors;
    uint64_t root;
    uint64_t edge;
    struct {
        int32_t tag;
        int32_t len;
        double number;
    } slots[2];
};

/* Writes records with two numbers into a buffer and reads them again. */
static double
record_rate(void)
{
    static uint8_t buffer[RECORDS * RECORD_BYTES];
    _Static_assert(sizeof(struct record) == RECORD_BYTES, "a record with two numbers");
    enum { TIMES = 400 };
    double sum = 0;
    uint64_t start = now_ns();
    for (int round = 0; round < TIMES; round++) {
        for (int i = 0; i < RECORDS; i++) {
            struct record *record = (struct record *)(buffer + (size_t)i * RECORD_BYTES);
            record->len = RECORD_BYTES;
            record->anchors = 0;
            record->slots[0].tag = 1;
            record->slots[0].number = i;
            record->slots[1].tag = 1;
            record->slots[1].number = round;
        }
        __asm__ volatile("" : : "r"(buffer) : "memory");
        const uint8_t *at = buffer;
        for (int i = 0; i < RECORDS; i++) {
            const struct record *record = (const struct record *)at;
            if (record->slots[0].tag == 1 && record->slots[1].tag == 1) {
                sum += record->slots[0].number + record->slots[1].number;
            }
            at += record->len;
        }
    }
    sink = (uint64_t)sum;
    return (double)RECORDS * TIMES / ((double)(now_ns() - start) / 1e9);
}

static double
system_call(void)
{
    enum { TIMES = 20000 };
    uint64_t start = now_ns();
    for (int i = 0; i < TIMES; i++) {
        syscall(SYS_getppid);
    }
    return (double)(now_ns() - start) / 1e9 / TIMES;
}

static double
clock_read(void)
{
    enum { TIMES = 50000 };
    uint64_t start = now_ns();
    for (int i = 0; i < TIMES; i++) {
        sink = now_ns();
    }
    return (double)(now_ns() - start) / 1e9 / TIMES;
}

/* ---- a stream over loopback TCP ---------------------------------------------------------------
 */

enum { STREAM_BYTES = 256 * 1024 * 1024, STREAM_WRITE = 32 * 1024, STREAM_READ = 256 * 1024 };

static void
need(bool is_fine, const char *what)
{
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

static void *
stream_write(void *arg)
{
    static uint8_t bytes[STREAM_WRITE];
    int fd = *(int *)arg;
    for (size_t left = STREAM_BYTES; left > 0;) {
        ssize_t count = write(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
        need(count > 0, "write");
        left -= (size_t)count;
    }
    shutdown(fd, SHUT_WR);
    return NULL;
}

/* Bytes a second from one thread to another, in writes of 32 KiB. */
static double
tcp_stream(void)
{
    static uint8_t bytes[STREAM_READ];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
    need(listen(listener, 1) == 0, "listen");
    need(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    need(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
    int server = accept(listener, NULL, NULL);
    need(server >= 0, "accept");
    pthread_t writer;
    uint64_t start = now_ns();
    need(pthread_create(&writer, NULL, stream_write, &client) == 0, "thread");
    uint64_t received = 0;
    for (ssize_t count; (count = read(server, bytes, sizeof(bytes))) > 0;) {
        received += (uint64_t)count;
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    pthread_join(writer, NULL);
    close(client);
    close(server);
    close(listener);
    return (double)received / seconds;
}

/* ---- a hash table -----------------------------------------------------------------------------
 */

struct entry {
    uint64_t key;
    double value;
};

static uint64_t
mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Adds to the values of keys in random order: the bare table, open addressing, half full. */
static double
probe_rate(uint64_t keys, uint64_t times)
{
    static struct entry *entries;
    static uint64_t filled;
    uint64_t slots = 1;
    while (slots < keys * 2) {
        slots *= 2;
    }
    if (filled != keys) {
        free(entries);
        entries = calloc(slots, sizeof(*entries));
        if (entries == NULL) {
            exit(1);
        }
        for (uint64_t key = 1; key <= keys; key++) {
            uint64_t at = mix(key) & (slots - 1);
            while (entries[at].key != 0) {
                at = (at + 1) & (slots - 1);
            }
            entries[at].key = key;
        }
        filled = keys;
    }
    uint64_t state = 1;
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < times; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t key = 1 + (state >> 33) % keys;
        uint64_t at = mix(key) & (slots - 1);
        while (entries[at].key != key) {
            at = (at + 1) & (slots - 1);
        }
        entries[at].value += 1;
    }
    return (double)times / ((double)(now_ns() - start) / 1e9);
}

static double
probe_small(void)
{
    return probe_rate(10000, 500000);
}

static double
probe_large(void)
{
    return probe_rate(10000000, 500000);
}

/* ---- all of them ------------------------------------------------------------------------------
 */

struct measure {
    const char *name;
    double (*run)(void);
    /* Times are best when they are small. */
    bool is_time;
};

static const struct measure measures[] = {
    {"memory_copy", memory_copy, false}, {"cache_copy", cache_copy, false},
    {"ring_8", ring_8, false},           {"ring_64", ring_64, false},
    {"trip_spin", trip_spin, true},      {"trip_block", trip_block, true},
    {"record", record_rate, false},      {"system_call", system_call, true},
    {"clock_read", clock_read, true},    {"probe_1e4", probe_small, false},
    {"probe_1e7", probe_large, false},   {"tcp_stream", tcp_stream, false},
};

static const struct measure *
measure_find(const char *name)
{
    for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++) {
        if (strcmp(measures[i].name, name) == 0) {
            return &measures[i];
        }
    }
    return NULL;
}

int
main(int count, char **words)
{
    if (count < 3) {
        fprintf(stderr, "usage: limits MILLISECONDS NAME ...\n");
        return 2;
    }
    uint64_t budget_ns = strtoull(words[1], NULL, 10) * 1000000u;
    for (int i = 2; i < count; i++) {
        const struct measure *measure = measure_find(words[i]);
        if (measure == NULL) {
            fprintf(stderr, "limits: no measure '%s'\n", words[i]);
            return 2;
        }
        uint64_t start = now_ns();
        double best = measure->run();
        /* The first round also warms up. */
        do {
            double value = measure->run();
            if (measure->is_time ? value < best : value > best) {
                best = value;
            }
        } while (now_ns() - start < budget_ns);
        printf("%s %.9g\n", measure->name, best);
        fflush(stdout);
    }
    return 0;
}
