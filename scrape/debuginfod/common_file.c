/*
 * dwz moves what several binaries share to a common file, and leaves its build id in the section
 * .gnu_debugaltlink of each. When a file of debug data has come, the same server is asked for that
 * section, and then for the common file, which goes behind the first one as a bundle. The server
 * reads no ELF file for that.
 *
 *	URL/buildid/abcdef/section/.gnu_debugaltlink	name, NUL, build id; most files have none
 *	URL/buildid/123456/debuginfo			the common file
 *
 * No other server is asked: this one has named the build id, and learns nothing by the request. The
 * first file is used whatever becomes of the second. A common file that breaks off leaves bytes
 * behind the first one without the table of a bundle, which readers of ELF files do not look at.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "scrape/debuginfod/internal.h"
#include "tsdb/debuginfo/elf/bundle.h"

METRIC_COUNTER(common_files_total, "epimetheus_debuginfod_common_files_total",
	"Common files of dwz that debug data from debuginfod servers named: got, not_there, too_large, "
	"failed.",
	"result");

#define SECTION_BYTES_MAX (8u << 10)
#define SECTION_TIMEOUT_NS (20 * NS_PER_S)
/* With the above it is less than an upload may be without progress. */
#define COMMON_IDLE_NS (60 * NS_PER_S)
#define BUNDLE_END_BYTES 64u /* zero bytes and the table of one file are less */

/* ---- requests ---- */

static enum err_code common_send(struct debuginfod_job *j, const char *what,
	const struct debuginfo_id *id, struct http_request_options *o, http_done_fn done,
	struct err *err)
{
	const struct debuginfod_server *c = j->server->config;
	struct debuginfod *f = j->fetcher;
	struct buf url = { 0 };
	char max_size[24];
	struct label header = { STR("X-DEBUGINFOD-MAXSIZE"), { max_size, 0 } };
	enum err_code rc;

	header.value.len = (size_t)snprintf(
		max_size, sizeof(max_size), "%" PRIu64, j->common_bytes_max);
	buf_printf(&url, STR_FMT "/buildid/" STR_FMT "/%s", STR_ARG(c->url),
		STR_ARG(debuginfo_id_text(id)), what);
	o->config = &c->http;
	o->url = buf_str(&url);
	if (o->data)
		o->headers = (struct labels){ &header, 1 };
	rc = buf_failed(&url) ? err_nomem(err, "request") :
							http_client_send(f->client, o, done, j, &j->request, err);
	buf_release(&url);
	if (rc)
		return rc;
	mutex_lock(&f->lock);
	j->server->requests++;
	mutex_unlock(&f->lock);
	return ERR_OK;
}

/* The file that was there before is used. */
static void common_file_not_taken(
	struct debuginfod_job *j, const char *result, const struct err *why)
{
	metric_add(&common_files_total, result, 1);
	log_warn("debuginfod", "common file of debug data not taken",
		LOG_STR("build_id", debuginfo_id_text(&j->want.id)),
		LOG_STR("common_file", debuginfo_id_text(&j->common)), LOG_S("server", j->server->shown),
		LOG_E(why));
	download_complete(j);
}

/* ---- the file ---- */

static size_t common_file_padding(const struct debuginfod_job *j)
{
	struct bundle_writer w;
	size_t padding;

	bundle_begin(&w, j->bytes);
	if (bundle_next(&w, BUNDLE_ALT, 0, &padding, NULL))
		padding = 0;
	bundle_release(&w);
	return padding;
}

static enum err_code common_file_append(struct debuginfod_job *j, struct str piece, struct err *err)
{
	static const char zeros[8] = { 0 };
	enum err_code rc = ERR_OK;

	if (!j->common_bytes)
		rc = debuginfo_upload_append(j->upload, (struct str){ zeros, common_file_padding(j) }, err);
	if (!rc)
		rc = debuginfo_upload_append(j->upload, piece, err);
	if (!rc)
		j->common_bytes += piece.len;
	return rc;
}

static void common_file_on_data(void *ctx, struct str piece)
{
	struct debuginfod_job *j = ctx;
	bool large = piece.len > j->common_bytes_max - j->common_bytes;
	struct err err;

	if (!large && download_is_elf_so_far(j->common_bytes, piece)) {
		if (common_file_append(j, piece, &err)) {
			http_request_cancel(j->request); /* common_file_on_done is not called */
			download_store_failed(j, &err);
		}
		return;
	}
	http_request_cancel(j->request);
	j->request = NULL;
	if (large)
		err_set(&err, ERR_LIMIT, "both files together are more than %" PRIu64 " bytes (max_size)",
			j->server->config->max_size);
	else
		err_set(&err, ERR_INVALID, "the answer is not an ELF file");
	common_file_not_taken(j, large ? "too_large" : "failed", &err);
}

static enum err_code common_file_end(struct debuginfod_job *j, struct err *err)
{
	struct bundle_writer w;
	struct buf table = { 0 };
	size_t padding;
	enum err_code rc;

	bundle_begin(&w, j->bytes);
	if ((rc = bundle_next(&w, BUNDLE_ALT, j->common_bytes, &padding, err)))
		bundle_release(&w);
	else if (!(rc = bundle_end(&w, &table, err)))
		rc = debuginfo_upload_append(j->upload, buf_str(&table), err);
	buf_release(&table);
	return rc;
}

static void common_file_on_done(void *ctx, const struct http_response *res)
{
	struct debuginfod_job *j = ctx;
	struct err err;

	j->request = NULL;
	if (!res->rc && res->status == 200 && j->common_bytes) {
		if (common_file_end(j, &err)) {
			download_store_failed(j, &err);
			return;
		}
		metric_add(&common_files_total, "got", 1);
		j->bytes += j->common_bytes;
		download_complete(j);
	} else if (res->rc) {
		common_file_not_taken(j, "failed", &res->err);
	} else if (res->status == 406) { /* the answer to X-DEBUGINFOD-MAXSIZE */
		err_set(&err, ERR_LIMIT, "both files together are more than %" PRIu64 " bytes (max_size)",
			j->server->config->max_size);
		common_file_not_taken(j, "too_large", &err);
	} else {
		err_set(&err, ERR_NOT_FOUND,
			res->status == 200 ? "the answer is empty" : "server returned HTTP status %d",
			res->status);
		common_file_not_taken(
			j, res->status == 404 || res->status == 410 ? "not_there" : "failed", &err);
	}
}

static void common_file_ask(struct debuginfod_job *j)
{
	struct http_request_options o = {
		.timeout_ns = j->server->config->timeout_ns,
		.idle_timeout_ns = COMMON_IDLE_NS,
		.body_size_max = SECTION_BYTES_MAX,
		.data = common_file_on_data,
	};
	struct err err;

	if (common_send(j, "debuginfo", &j->common, &o, common_file_on_done, &err))
		common_file_not_taken(j, "failed", &err);
}

/* ---- the section ---- */

static bool common_file_read_link(struct debuginfod_job *j, struct str section)
{
	const char *nul = section.len ? memchr(section.ptr, 0, section.len) : NULL;
	size_t name_len = nul ? (size_t)(nul - section.ptr) : 0;

	return name_len &&
		debuginfo_id_of_bytes(
			&j->common, DEBUGINFO_GNU, (struct str){ nul + 1, section.len - name_len - 1 }) &&
		!debuginfo_id_eq(&j->common, &j->want.id);
}

/* Any refusal is a no: servers older than 0.188 do not know the request. */
static void common_file_on_section(void *ctx, const struct http_response *res)
{
	struct debuginfod_job *j = ctx;

	j->request = NULL;
	if (!res->rc && res->status == 200 && common_file_read_link(j, res->body))
		common_file_ask(j);
	else
		download_complete(j);
}

void common_file_start(struct debuginfod_job *j)
{
	uint64_t file_max = debuginfo_file_bytes_max(debuginfo_store(j->fetcher->o.debuginfo)),
			 max = j->server->config->max_size;
	struct http_request_options o = {
		.timeout_ns = j->server->config->timeout_ns < SECTION_TIMEOUT_NS ?
			j->server->config->timeout_ns :
			SECTION_TIMEOUT_NS,
		.body_size_max = SECTION_BYTES_MAX,
	};
	struct err err;

	assert(j->upload && !j->request);
	max = file_max < max ? file_max : max;
	j->common_bytes = 0;
	j->common_bytes_max = max > j->bytes + BUNDLE_END_BYTES ? max - j->bytes - BUNDLE_END_BYTES : 0;
	if (!j->common_bytes_max ||
		common_send(j, "section/.gnu_debugaltlink", &j->want.id, &o, common_file_on_section, &err))
		download_complete(j);
}
