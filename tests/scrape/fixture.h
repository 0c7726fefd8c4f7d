/*
 * A manager with three loops, a target and a fake sink, for tests of the way from target to sink.
 *
 * Threads: one.
 */
#ifndef TESTS_SCRAPE_FIXTURE_H
#define TESTS_SCRAPE_FIXTURE_H

#include "scrape/manager.h"
#include "tests/scrape/fake_sink.h"
#include "tests/scrape/http_target.h"

/* Parts of pprof_config that switch off profiles. */
#define OFF_BUT_LEAKS \
	"process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, " \
	"mutex: {enabled: false}, goroutine: {enabled: false}"
#define NO_LEAKS "goroutineleak: {enabled: false}"
#define NO_CPU \
	"memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, " \
	"goroutine: {enabled: false}, " NO_LEAKS
#define OFF "process_cpu: {enabled: false}, " NO_CPU
/* A label of a target: requests get a minute more, so that none times out on a busy machine. */
#define PATIENT "__param_seconds: '60'"

struct fixture {
	struct http_target *target;
	struct fake_sink sink;
	struct scrape_manager *manager;
	struct arena arena; /* of the last snapshot */
	struct scrape_snapshot shown;
};

void fixture_init(struct fixture *f);
void fixture_release(struct fixture *f);
/* Jobs as YAML; every PORT in them becomes the target's. */
enum err_code fixture_apply(struct fixture *f, const char *jobs, struct err *err);
void fixture_look(struct fixture *f); /* a fresh snapshot */
/* The target of this profile, in a fresh snapshot; an empty one when there is none. */
struct target_info fixture_see(struct fixture *f, const char *profile);
/* Waits until the target has been scraped once more than `scrapes` times. */
struct target_info fixture_wait_scraped(struct fixture *f, const char *profile, uint64_t scrapes);
/* Waits until this is its last error. */
void fixture_wait_error(struct fixture *f, const char *profile, const char *error);

#endif
