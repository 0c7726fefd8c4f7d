/*
 * Symbols of a large binary: its index, and look-ups in it. Lines of JSON.
 *
 *   symbols_bench extract BINARY INDEX     makes the index; time, memory, sizes
 *   symbols_bench addresses INDEX N        prints N random addresses that have names
 *   symbols_bench find INDEX ROUNDS        looks up a million distinct ones, in random order
 *
 * Memory is what is not of a file, looked at every three milliseconds.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/map.h"
#include "base/thread.h"
#include "tsdb/debuginfo/extract/extract.h"
#include "tsdb/debuginfo/index/format.h"

#define FOUND 1000000u
#define DEPTH 64u

static struct err err;

static void must(enum err_code rc)
{
	if (rc) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct str mapped(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0 || fstat(fd, &st) != 0 ||
		(p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0)) ==
			MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return (struct str){ p, (size_t)st.st_size };
}

/* ---- memory ---- */

static _Atomic bool watch_ends;
static long watched_kib;

static void *watch(void *arg)
{
	char text[4096];
	const char *at;
	ssize_t n;
	int fd;

	while (!atomic_load(&watch_ends)) {
		fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		text[n > 0 ? n : 0] = '\0';
		if ((at = strstr(text, "RssAnon:")) && strtol(at + 8, NULL, 10) > watched_kib)
			watched_kib = strtol(at + 8, NULL, 10);
		usleep(3000);
	}
	return arg;
}

/* ---- commands ---- */

static uint64_t dwarf_bytes(struct str f)
{
	const Elf64_Ehdr *h = (const void *)f.ptr;
	const Elf64_Shdr *s = (const void *)(f.ptr + h->e_shoff);
	uint64_t sum = 0;

	for (unsigned i = 0; i < h->e_shnum; i++)
		if (!strncmp(f.ptr + s[h->e_shstrndx].sh_offset + s[i].sh_name, ".debug_", 7))
			sum += s[i].sh_size;
	return sum;
}

static void extract(const char *binary, const char *to)
{
	struct str input = mapped(binary);
	struct buf index = { 0 };
	pthread_t watcher;
	double seconds;
	FILE *f;

	if (pthread_create(&watcher, NULL, watch, NULL) != 0)
		exit(1);
	seconds = cpu_s();
	must(debuginfo_extract(input, STR(""), &index, &err));
	seconds = cpu_s() - seconds;
	atomic_store(&watch_ends, true);
	pthread_join(watcher, NULL);
	if (!(f = fopen(to, "wbe")) || fwrite(index.ptr, 1, index.len, f) != index.len || fclose(f)) {
		perror(to);
		exit(1);
	}
	printf("{\"cpu_s\":%.3f,\"file_bytes\":%zu,\"dwarf_bytes\":%" PRIu64
		   ",\"index_bytes\":%zu,\"memory_mib\":%.1f}\n",
		seconds, input.len, dwarf_bytes(input), index.len, (double)watched_kib / 1024);
	buf_release(&index);
}

static struct symindex *opened(const char *path, struct header *h)
{
	struct symindex *x;
	struct str bytes = mapped(path);

	must(symindex_open(bytes, &x, &err));
	must(header_read(bytes, h, &err));
	return x;
}

/* Random ones between the first and the last address that has a name; true: this one has. */
static bool draw(const struct symindex *x, const struct header *h, uint64_t i, uint64_t *out)
{
	*out = h->base + map_hash_u64(i) % (h->end - h->base);
	return symindex_find(x, *out, NULL, 0);
}

static void addresses(const char *index, uint64_t n)
{
	struct header h;
	struct symindex *x = opened(index, &h);
	uint64_t at;

	for (uint64_t i = 0; n; i++)
		if (draw(x, &h, i, &at)) {
			printf("0x%" PRIx64 "\n", at);
			n--;
		}
	symindex_close(x);
}

static void find(const char *index, uint64_t rounds)
{
	static struct symindex_location v[DEPTH];
	struct header h;
	struct symindex *x = opened(index, &h);
	uint64_t *at = malloc(FOUND * sizeof(*at)), names = 0;
	uint32_t n = 0;
	double seconds;

	if (!at)
		exit(1);
	for (uint64_t i = 0; n < FOUND; i++)
		n += draw(x, &h, i, &at[n]);
	for (uint64_t r = 0; r < rounds; r++) {
		names = 0;
		seconds = cpu_s();
		for (n = 0; n < FOUND; n++)
			names += symindex_find(x, at[n], v, DEPTH);
		seconds = cpu_s() - seconds;
		printf("{\"per_s\":%.0f,\"names\":%.2f}\n", FOUND / seconds, (double)names / FOUND);
	}
	must(symindex_damaged(x, &err));
	symindex_close(x);
	free(at);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "extract")) {
		extract(argv[2], argv[3]);
	} else if (argc == 4 && !strcmp(argv[1], "addresses")) {
		addresses(argv[2], strtoull(argv[3], NULL, 10));
	} else if (argc == 4 && !strcmp(argv[1], "find")) {
		find(argv[2], strtoull(argv[3], NULL, 10));
	} else {
		fprintf(stderr,
			"usage: symbols_bench extract BINARY INDEX | addresses INDEX N | find INDEX ROUNDS\n");
		return 1;
	}
	return 0;
}
