/*
 * All fuzz drivers in one program, without a fuzzer: called by the name of a driver
 * (build/asan/tests/fuzz/otlp_seeds) it runs that driver on each of its seeds, which has the inputs
 * that once were a fault. The fuzzer itself finds new ones (`make fuzz`).
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (1 << 20)

/* tests/tests.mk gives SEEDS: X(NAME) for each driver, whose functions bear its name. */
#define X(name) \
	int seeds_one_##name(const uint8_t *data, size_t size); \
	__attribute__((weak)) int seeds_init_##name(int *argc, char ***argv);
SEEDS
#undef X

static const struct seeds_driver {
	const char *name;
	int (*one)(const uint8_t *data, size_t size);
	int (*init)(int *argc, char ***argv); /* NULL: needs none */
} seeds_drivers[] = {
#define X(name) { #name, seeds_one_##name, seeds_init_##name },
	SEEDS
#undef X
};

/* The bytes are in memory of exactly their size, so that the sanitizer sees a read behind them. */
static int seeds_run_file(const struct seeds_driver *d, const char *path)
{
	uint8_t *bytes = malloc(INPUT_MAX), *exact;
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f || !bytes) {
		printf("FAIL %s: %s\n", path, strerror(errno));
		free(bytes);
		return 1;
	}
	n = fread(bytes, 1, INPUT_MAX, f);
	fclose(f);
	exact = malloc(n + !n);
	if (exact) {
		memcpy(exact, bytes, n);
		printf("%s\n", path); /* the last line, where the driver ends the program */
		d->one(exact, n);
	}
	free(exact);
	free(bytes);
	return 0;
}

static int seeds_run(const struct seeds_driver *d, int argc, char **argv)
{
	char dir[256], path[768];
	const struct dirent *e;
	int failed = 0, n = 0;
	DIR *all;

	if (d->init && d->init(&argc, &argv) != 0)
		return 2;
	snprintf(dir, sizeof(dir), "tests/fuzz/%s", d->name);
	if ((all = opendir(dir))) {
		while ((e = readdir(all)))
			if (e->d_name[0] != '.' && ++n) {
				snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
				failed += seeds_run_file(d, path);
			}
		closedir(all);
	}
	if (n == 0) {
		printf("FAIL %s: no seeds\n", dir);
		failed++;
	}
	printf("%d passed, %d failed, 0 skipped\n", failed ? 0 : 1, failed);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
	const char *end = strstr(name, "_seeds");
	size_t n = end ? (size_t)(end - name) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(seeds_drivers) / sizeof(seeds_drivers[0]); i++)
		if (strlen(seeds_drivers[i].name) == n && memcmp(seeds_drivers[i].name, name, n) == 0)
			return seeds_run(&seeds_drivers[i], argc, argv);
	fprintf(stderr, "%s: no such driver\n", name);
	return 2;
}
