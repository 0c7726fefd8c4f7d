#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "scrape/debuginfod/internal.h"

METRIC_COUNTER(requests_total, "epimetheus_debuginfod_requests_total",
	"Requests to debuginfod servers: got, not_there, server_failed, broke_off, too_large, not_elf, "
	"not_wanted, store_failed.",
	"result");
METRIC_COUNTER(bytes_total, "epimetheus_debuginfod_bytes_total",
	"Bytes of files from debuginfod servers.", NULL);

static const char *const result_names[] = { "got", "not_there", "server_failed", "broke_off",
	"too_large", "not_elf", "not_wanted", "store_failed" };

#define PAGE_BYTES_MAX (1u << 20) /* of an answer that is no file */

static void download_end(struct debuginfod_job *j, struct outcome *o)
{
	debuginfo_upload_cancel(j->upload);
	j->upload = NULL;
	j->request = NULL;
	o->bytes = j->bytes;
	metric_add(&requests_total, result_names[o->result], 1);
	metric_add(&bytes_total, NULL, (double)j->bytes);
	download_ended(j, o);
}

void download_cancel(struct debuginfod_job *j)
{
	http_request_cancel(j->request);
	debuginfo_upload_cancel(j->upload);
	j->upload = NULL;
	j->request = NULL;
}

/* What an error of the store says of the download. */
static enum outcome_kind download_of_store(enum err_code rc)
{
	switch (rc) {
	case ERR_EXISTS:
		return NOT_WANTED;
	case ERR_LIMIT:
		return TOO_LARGE;
	case ERR_TIMEOUT:
		return BROKE_OFF;
	default:
		return STORE_FAILED;
	}
}

static enum outcome_kind download_too_large(const struct debuginfod_job *j, struct err *err)
{
	err_set(err, ERR_LIMIT, "the file is more than %" PRIu64 " bytes (max_size)",
		j->server->config->max_size);
	return TOO_LARGE;
}

/* ---- the body ---- */

bool download_is_elf_so_far(uint64_t at, struct str piece)
{
	const char magic[] = "\177ELF";

	for (size_t i = 0; i < piece.len && at + i < sizeof(magic) - 1; i++)
		if (piece.ptr[i] != magic[at + i])
			return false;
	return true;
}

static enum err_code download_begin(struct debuginfod_job *j, struct err *err)
{
	size_t i = (size_t)(j->server - j->fetcher->servers.v);

	const struct debuginfo_offer offer = { .kind = j->ask[i] == ASK_DEBUGINFO ? DEBUGINFO_NO_TEXT :
																				DEBUGINFO_STRIPPED,
		.origin = DEBUGINFO_DEBUGINFOD,
		.path = str_of(j->want.path) };

	return debuginfo_upload_begin(
		debuginfo_store(j->fetcher->o.debuginfo), &j->want.id, &offer, &j->upload, err);
}

/* GOT: so far. */
static enum outcome_kind download_take(struct debuginfod_job *j, struct str piece, struct err *err)
{
	enum err_code rc;

	j->is_elf &= download_is_elf_so_far(j->bytes, piece);
	if (!j->any && !j->is_elf) {
		err_set(err, ERR_INVALID, "the answer is not an ELF file");
		return NOT_ELF;
	}
	if (piece.len > j->server->config->max_size - j->bytes)
		return download_too_large(j, err);
	if (!j->upload && (rc = download_begin(j, err)))
		return download_of_store(rc);
	if ((rc = debuginfo_upload_append(j->upload, piece, err)))
		return download_of_store(rc);
	j->bytes += piece.len;
	return GOT;
}

static void download_on_data(void *ctx, struct str piece)
{
	struct debuginfod_job *j = ctx;
	struct outcome o = { 0 };

	o.result = download_take(j, piece, &o.err);
	if (o.result == GOT)
		return;
	http_request_cancel(j->request); /* download_on_done is not called */
	download_end(j, &o);
}

/* ---- the end ---- */

int64_t download_retry_after(const struct http_response *res)
{
	uint64_t seconds;

	if (!str_to_u64(http_response_header(res, "retry-after"), &seconds))
		return 0;
	if (seconds > DEBUGINFOD_RETRY_AFTER_MAX_NS / NS_PER_S)
		return DEBUGINFOD_RETRY_AFTER_MAX_NS;
	return (int64_t)seconds * NS_PER_S;
}

static enum outcome_kind download_finish(struct debuginfod_job *j, struct err *err)
{
	struct debuginfo_upload *u = j->upload;
	enum err_code rc;

	if (!u) {
		err_set(err, ERR_INVALID, "the answer is empty");
		return NOT_ELF;
	}
	j->upload = NULL; /* finish frees it */
	if ((rc = debuginfo_upload_finish(u, err)))
		return download_of_store(rc);
	debuginfo_wake(j->fetcher->o.debuginfo);
	return GOT;
}

static enum outcome_kind download_of_status(
	const struct debuginfod_job *j, const struct http_response *res, struct err *err)
{
	if (res->status == 404 || res->status == 410)
		return NOT_THERE;
	if (res->status == 406) /* the answer to X-DEBUGINFOD-MAXSIZE */
		return download_too_large(j, err);
	err_set(err, ERR_UNAVAILABLE, "server returned HTTP status %d", res->status);
	return SERVER_FAILED;
}

void download_complete(struct debuginfod_job *j)
{
	struct outcome o = { 0 };

	o.result = download_finish(j, &o.err);
	download_end(j, &o);
}

void download_store_failed(struct debuginfod_job *j, const struct err *why)
{
	struct outcome o = { .result = download_of_store(why->code), .err = *why };

	/* Each file is within its limit, so it is that of all uploads together: it may come again. */
	if (o.result == TOO_LARGE)
		o.result = STORE_FAILED;
	download_end(j, &o);
}

static void download_on_done(void *ctx, const struct http_response *res)
{
	struct debuginfod_job *j = ctx;
	struct outcome o = { 0 };

	if (res->rc) {
		o.result = j->bytes ? BROKE_OFF : SERVER_FAILED;
		o.err = res->err;
	} else if (res->status == 200 && j->is_elf && j->upload &&
		j->ask[j->server - j->fetcher->servers.v] == ASK_DEBUGINFO) {
		j->request = NULL;
		common_file_start(j);
		return;
	} else if (res->status == 200) {
		o.result = download_finish(j, &o.err);
	} else {
		o.result = download_of_status(j, res, &o.err);
		o.retry_after_ns = download_retry_after(res);
	}
	download_end(j, &o);
}

/* ---- the request ---- */

static enum err_code download_send_request(
	struct debuginfod_job *j, struct buf *url, struct err *err)
{
	const struct debuginfod_server *c = j->server->config;
	size_t i = (size_t)(j->server - j->fetcher->servers.v);
	char max_size[24];
	struct label header = { STR("X-DEBUGINFOD-MAXSIZE"), { max_size, 0 } };
	struct http_request_options o = {
		.config = &c->http,
		.headers = { &header, 1 },
		.timeout_ns = c->timeout_ns,
		.body_size_max = PAGE_BYTES_MAX,
		.data = download_on_data,
	};

	header.value.len = (size_t)snprintf(max_size, sizeof(max_size), "%" PRIu64, c->max_size);
	buf_printf(url, STR_FMT "/buildid/" STR_FMT "/%s", STR_ARG(c->url),
		STR_ARG(debuginfo_id_text(&j->want.id)),
		j->ask[i] == ASK_DEBUGINFO ? "debuginfo" : "executable");
	if (buf_failed(url))
		return err_nomem(err, "request");
	o.url = buf_str(url);
	return http_client_send(j->fetcher->client, &o, download_on_done, j, &j->request, err);
}

void download_start(struct debuginfod_job *j)
{
	struct outcome o = { .result = SERVER_FAILED };
	struct buf url = { 0 };
	enum err_code rc;

	assert(j->server && !j->request && !j->upload);
	j->bytes = 0;
	j->is_elf = true;
	rc = download_send_request(j, &url, &o.err);
	buf_release(&url);
	if (rc)
		download_end(j, &o);
}
