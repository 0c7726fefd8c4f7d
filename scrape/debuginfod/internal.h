/*
 * The parts of the fetcher, as they see each other.
 *
 *	fetcher.c     opening, reload, the thread that takes what is wanted, the list
 *	directory.c   files of local directories
 *	jobs.c        who is asked next, servers that fail
 *	download.c    one request, from its answer to the store
 *	common_file.c what dwz took out of the file that came, asked of the same server
 *	source.c      source code for those who wait for it
 */
#ifndef SCRAPE_DEBUGINFOD_INTERNAL_H
#define SCRAPE_DEBUGINFOD_INTERNAL_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "base/net/http_client.h"
#include "base/net/loop.h"
#include "base/thread.h"
#include "scrape/debuginfod/debuginfod.h"

struct event;
struct debuginfod_job;

struct debuginfod_peer {
	const struct debuginfod_server *config;
	char *shown; /* its URL without secrets */
	struct debuginfod_job *job; /* the download under way; NULL: none */
	unsigned failures; /* one after the other */
	int64_t until_ns; /* monotonic: it rests until then */
	/* These are written on the loop, under the lock. */
	uint64_t requests, files, bytes;
	bool failing;
	struct err error; /* msg "": none */
	int64_t error_s, again_s;
};

struct servers {
	struct config *config; /* referenced: what the servers point into; NULL: none yet */
	struct debuginfod_peer *v;
	size_t n;
	struct buf encoded; /* the settings */
};

enum ask { ASK_DEBUGINFO, ASK_EXECUTABLE, ASK_NO_MORE };

/* A binary in line for servers. Of the loop's thread once it was posted. */
struct debuginfod_job {
	TAILQ_ENTRY(debuginfod_job) link;
	struct loop_work work;
	struct debuginfod *fetcher;
	struct debuginfo_want want;
	bool looked; /* a directory had a file, but it was not good enough */
	unsigned char ask[DEBUGINFOD_SERVERS_MAX]; /* enum ask, by server */
	bool asked; /* a server was */
	unsigned broken; /* answers that broke off */
	int64_t missing_ns; /* for how long, if no server has it */
	/* the download under way */
	struct debuginfod_peer *server; /* NULL: none */
	bool any; /* also what is no ELF file: the extraction says what it is */
	struct http_request *request;
	struct debuginfo_upload *upload;
	uint64_t bytes; /* with the common file's, once it is there whole */
	bool is_elf; /* so far */
	struct debuginfo_id common; /* of the common file */
	uint64_t common_bytes, common_bytes_max; /* so far */
};
TAILQ_HEAD(job_list, debuginfod_job);

#define SOURCE_MISSES_MAX 1024u
struct source_miss { /* a file that no server had */
	uint64_t key; /* a hash of what was asked for */
	int64_t until_ns; /* monotonic */
};
struct source_job;
TAILQ_HEAD(source_list, source_job);

struct debuginfod {
	struct debuginfod_options o;
	struct thread thread; /* takes what is wanted */
	atomic_bool closing;
	atomic_uint jobs_n; /* posted or in the list */
	atomic_uint sources_n; /* threads that wait for source code */
	uint64_t source_seed; /* constant; of the keys of misses */
	struct loop *loop;
	struct mutex lock; /* guards config, servers (with the loop: it reads without), their counts */
	struct config *config; /* referenced; its directories are looked into; NULL: none yet */
	struct servers servers;
	/* the loop's own */
	struct http_client *client;
	struct event *timer;
	struct job_list jobs;
	unsigned downloads_n;
	struct source_list sources;
	struct source_miss misses[SOURCE_MISSES_MAX];
	size_t misses_at; /* the next one is here */
	bool store_fails;
	int64_t store_until_ns; /* monotonic */
};

/* ---- directory.c ---- */

/* Whether there was a file, be it of another build id: its extraction costs time. */
bool directories_try(
	struct debuginfod *d, const struct debuginfod_config *c, const struct debuginfo_want *want);

/* ---- jobs.c: on the loop's thread ---- */

void jobs_take(void *ctx); /* a struct debuginfod_job that was posted */
void jobs_kick(struct debuginfod *d); /* soon: starts what can be started */
void jobs_start(struct debuginfod *d);
/* The servers are others now: ends downloads, asks all again. */
void jobs_restart(struct debuginfod *d, struct servers *fresh);
void jobs_end(struct debuginfod *d);
/* It rests, for retry_after_ns if that is not 0; or it works, and its failures are forgotten. */
void server_fails(
	struct debuginfod *d, struct debuginfod_peer *p, const struct err *why, int64_t retry_after_ns);
void server_works(struct debuginfod *d, struct debuginfod_peer *p);

/* ---- download.c: on the loop's thread ---- */

enum outcome_kind {
	GOT,
	NOT_THERE,
	SERVER_FAILED,
	BROKE_OFF, /* behind its first byte */
	TOO_LARGE,
	NOT_ELF, /* and another server may have it */
	NOT_WANTED, /* any more */
	STORE_FAILED,
};
struct outcome {
	enum outcome_kind result;
	struct err err; /* not of GOT, NOT_THERE, NOT_WANTED */
	int64_t retry_after_ns; /* 0: the server does not say */
	uint64_t bytes;
};

/* Ends in download_ended, perhaps before it returns. j->server is set. */
void download_start(struct debuginfod_job *j);
void download_cancel(struct debuginfod_job *j);
int64_t download_retry_after(const struct http_response *res); /* 0: the answer does not say */
/* The file is there, whole: it is queued, and the download ends. */
void download_complete(struct debuginfod_job *j);
/* It ends by an error of the store behind the first file. */
void download_store_failed(struct debuginfod_job *j, const struct err *why);
/* Whether these bytes, from `at` of a file on, may be those of an ELF file. */
bool download_is_elf_so_far(uint64_t at, struct str piece);
/* jobs.c */
void download_ended(struct debuginfod_job *j, const struct outcome *o);

/* ---- common_file.c: on the loop's thread ---- */

/* Behind the last byte of a file of debug data. Ends in download_complete or _store_failed. */
void common_file_start(struct debuginfod_job *j);

/* ---- source.c: on the loop's thread ---- */

/* The servers will be others: requests end, and none begins before sources_restart. */
void sources_stop(struct debuginfod *d);
void sources_restart(struct debuginfod *d); /* asks all again */
void sources_end(struct debuginfod *d);

#endif
