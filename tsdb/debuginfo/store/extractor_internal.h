/*
 * Messages between the extractor's processes. Server and slot: one message per packet, over a
 * SOCK_SEQPACKET pair; a request carries its descriptors. Worker and slot: one result in a pipe,
 * which the slot does not believe.
 */
#ifndef TSDB_DEBUGINFO_STORE_EXTRACTOR_INTERNAL_H
#define TSDB_DEBUGINFO_STORE_EXTRACTOR_INTERNAL_H

#include "tsdb/debuginfo/store/extractor.h"

#define TEXT_BYTES_MAX 500

struct request {
	uint64_t number;
	uint64_t older_bytes; /* 0: there is no older index */
};
/* Descriptors of a request. Where there is no older index FD_OLDER is the input once more. */
enum request_fd { FD_IN, FD_OUT, FD_OLDER, REQUEST_FDS };

enum outcome {
	OUTCOME_RETURNED, /* the function did, with code and text */
	OUTCOME_SIGNAL, /* code: which */
	OUTCOME_EXIT, /* without a result; code: of its exit */
	OUTCOME_NONSENSE, /* a result that no worker writes */
	OUTCOME_TIME,
	OUTCOME_INPUT, /* larger than its limit, or not a file */
	OUTCOME_OUTPUT, /* larger than its limit */
	OUTCOME_WRITE, /* code: the error's number */
	OUTCOME_NO_CHILD, /* code: the error's number */
	OUTCOME_NO_FILTER, /* with text */
	OUTCOME_RESTARTED, /* a slot has begun; what ran in it is lost */
};

/* Of the worker, to its slot. */
struct extractor_result {
	uint32_t outcome, code, text_len;
	char text[TEXT_BYTES_MAX];
};

/* Of the slot, to the server. */
struct extractor_answer {
	uint64_t number; /* the request's; 0: OUTCOME_RESTARTED */
	struct extractor_result result;
};

/* The keeper: never returns. peers: its ends of the sockets. */
void extractor_keep(const struct extractor_options *o, const int *peers, unsigned n)
	__attribute__((noreturn));
/* The worker: never returns. slot_pid: who forked it. */
void extractor_work(const struct extractor_options *o, const struct request *r,
	const int fds[REQUEST_FDS], int result_fd, int slot_pid) __attribute__((noreturn));

#endif
