/*
 * Runs LLVMFuzzerTestOneInput of the program it is linked with on mutations of a corpus, without
 * any tool beyond gcc. Every run depends on (seed, number of the run) only, so a failure is
 * repeated with the two numbers that are printed when the process dies.
 *
 * Usage: fuzz_x [--runs N | --seconds N] [--seed S] [--only RUN] [CORPUS_FOLDER]
 * Seconds are of its own processor time, so that it does as much on a busy machine.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 4096, CORPUS_MAX = 256 };

struct input {
    size_t size;
    uint8_t data[INPUT_MAX];
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_count;
static uint64_t seed;
static uint64_t run;

static void
print_run(void)
{
    char line[128];
    int n = snprintf(line, sizeof(line), "fuzz: died in --seed %llu --only %llu\n",
                     (unsigned long long)seed, (unsigned long long)run);
    if (write(STDERR_FILENO, line, (size_t)n) < 0) {
        _exit(1);
    }
}

static void
die(int number)
{
    print_run();
    signal(number, SIG_DFL);
    raise(number);
}

/* Present in sanitizer builds only. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void
read_corpus(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        perror(folder);
        exit(2);
    }
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL && corpus_count < CORPUS_MAX) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file != NULL) {
            struct input *input = &corpus[corpus_count++];
            input->size = fread(input->data, 1, INPUT_MAX, file);
            fclose(file);
        }
    }
    closedir(dir);
}

static size_t
below(struct sl_random *random, size_t limit)
{
    return limit == 0 ? 0 : (size_t)sl_random_below(random, limit);
}

static void
insert_bytes(struct input *input, struct sl_random *random)
{
    size_t at = below(random, input->size + 1);
    size_t n = 1 + below(random, 16);
    if (input->size + n > INPUT_MAX) {
        return;
    }
    memmove(input->data + at + n, input->data + at, input->size - at);
    uint8_t byte = (uint8_t)sl_random_u64(random);
    for (size_t i = 0; i < n; i++) {
        input->data[at + i] = byte;
        byte = (uint8_t)(sl_random_below(random, 2) == 0 ? byte : sl_random_u64(random));
    }
    input->size += n;
}

static void
remove_bytes(struct input *input, struct sl_random *random)
{
    size_t at = below(random, input->size);
    size_t n = 1 + below(random, 8);
    n = n > input->size - at ? input->size - at : n;
    memmove(input->data + at, input->data + at + n, input->size - at - n);
    input->size -= n;
}

/* Numbers at which lengths and counts tend to break. */
static void
write_number(struct input *input, struct sl_random *random)
{
    static const uint64_t NUMBERS[] = {0,
                                       1,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x7fff,
                                       0x8000,
                                       0xffff,
                                       0x7fffffff,
                                       0x80000000,
                                       0xffffffff,
                                       0x7fffffffffffffff,
                                       0x8000000000000000,
                                       0xffffffffffffffff};
    uint64_t number = NUMBERS[below(random, sizeof(NUMBERS) / sizeof(NUMBERS[0]))];
    size_t width = (size_t)1 << below(random, 4);
    if (width <= input->size) {
        memcpy(input->data + below(random, input->size - width + 1), &number, width);
    }
}

static void
mutate_once(struct input *input, struct sl_random *random)
{
    switch (below(random, 6)) {
    case 0:
        if (input->size > 0) {
            input->data[below(random, input->size)] ^= (uint8_t)(1u << below(random, 8));
        }
        break;
    case 1:
        if (input->size > 0) {
            input->data[below(random, input->size)] = (uint8_t)sl_random_u64(random);
        }
        break;
    case 2:
        insert_bytes(input, random);
        break;
    case 3:
        if (input->size > 0) {
            remove_bytes(input, random);
        }
        break;
    case 4:
        write_number(input, random);
        break;
    default:
        input->size = below(random, input->size + 1);
        break;
    }
}

static void
run_one(void)
{
    static struct input input;
    struct sl_random random;
    sl_random_seed(&random, seed * 0x9e3779b97f4a7c15u + run);
    input = corpus[below(&random, corpus_count)];
    /* The corpus itself runs first, unchanged. */
    if (run < corpus_count) {
        input = corpus[run];
    } else {
        for (size_t n = 1 + below(&random, 8); n > 0; n--) {
            mutate_once(&input, &random);
        }
    }
    /* A block of the exact size lets the sanitizer see a read past the end. */
    uint8_t *exact = malloc(input.size > 0 ? input.size : 1);
    if (exact == NULL) {
        abort();
    }
    memcpy(exact, input.data, input.size);
    LLVMFuzzerTestOneInput(exact, input.size);
    free(exact);
}

int
main(int argc, char **argv)
{
    uint64_t runs = 20000;
    double seconds = 0;
    uint64_t only = UINT64_MAX;
    seed = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            runs = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            seconds = strtod(argv[++i], NULL);
            runs = UINT64_MAX;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = strtoull(argv[++i], NULL, 10);
        } else {
            read_corpus(argv[i]);
        }
    }
    if (corpus_count == 0) {
        corpus_count = 1; /* the empty input */
    }
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(print_run);
    } else {
        signal(SIGSEGV, die);
        signal(SIGBUS, die);
        signal(SIGFPE, die);
    }
    signal(SIGABRT, die);
    printf("fuzz: seed %llu, corpus of %zu\n", (unsigned long long)seed, corpus_count);
    fflush(stdout);
    run = only;
    if (only != UINT64_MAX) {
        run_one();
        return 0;
    }
    clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
    for (run = 0; run < runs && (seconds == 0 || run % 256 != 0 || clock() < end); run++) {
        run_one();
    }
    printf("fuzz: %llu runs\n", (unsigned long long)run);
    return 0;
}
