/*
 * Files larger than part_bytes: parts are put one after the other, then joined in the store. Until
 * then nobody sees them; after a failure they are removed. Parts of a program that was killed stay:
 * a rule of the bucket (AbortIncompleteMultipartUpload) removes them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/xml/xml.h"
#include "tsdb/bucket/internal.h"

#define PARTS_MAX 10000
#define RIGHT "s3:PutObject"

struct bucket_multipart_upload {
	struct bucket *b;
	struct str key;
	char name[PUT_NAME_LEN + 1];
	char hash[SIGV4_HASH_LEN + 1]; /* of the whole; it must be known at the begin */
	struct arena arena;
	struct str id;
	struct buf list; /* of parts, as XML */
	uint64_t part_bytes;
};

static enum err_code bucket_multipart_read_answer(struct arena *a,
	const struct bucket_answer *answer, const char *root_name, struct xml_node **root,
	struct err *err)
{
	enum err_code rc = xml_parse(a, buf_str(&answer->body), root, err);

	if (!rc && !str_is((*root)->name, root_name))
		rc = err_set(err, ERR_INVALID, "the store answers with another XML than %s", root_name);
	return rc;
}

static enum err_code bucket_multipart_upload_begin(
	struct bucket_multipart_upload *u, struct err *err)
{
	struct bucket_call c = {
		.operation = "begin_upload", .right = RIGHT, .method = "POST", .key = u->key
	};
	struct xml_node *root;
	enum err_code rc;

	call_query(&c, "uploads", STR(""));
	call_header(&c, META_PUT, str_of(u->name));
	call_header(&c, META_HASH, str_of(u->hash));
	if (!(rc = bucket_call(u->b, &c, err)) &&
		!(rc = bucket_multipart_read_answer(
			  &u->arena, &c.answer, "InitiateMultipartUploadResult", &root, err))) {
		u->id = xml_text(root, "UploadId");
		if (!u->id.len)
			rc = err_set(err, ERR_INVALID, "the store gives no UploadId");
	}
	answer_release(&c.answer);
	return rc;
}

static void bucket_multipart_add_escaped(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] == '&' || s.ptr[i] == '<' || s.ptr[i] == '>' || s.ptr[i] == '"')
			buf_printf(out, "&#%d;", s.ptr[i]);
		else
			buf_add_char(out, s.ptr[i]);
}

static enum err_code bucket_multipart_upload_put_part(struct bucket_multipart_upload *u,
	unsigned number, struct file_part *part, uint64_t bytes, struct err *err)
{
	const struct http_body_source source = { bytes, file_part_read, part };
	char hash[SIGV4_HASH_LEN + 1], text[16];
	struct bucket_call c = { .operation = "put_part",
		.right = RIGHT,
		.method = "PUT",
		.key = u->key,
		.source = &source,
		.payload_hash = hash,
		.bytes = bytes };
	struct str etag;
	enum err_code rc;

	if ((rc = file_part_hash(part, bytes, hash, err)))
		return rc;
	snprintf(text, sizeof(text), "%u", number);
	call_query(&c, "partNumber", str_of(text));
	call_query(&c, "uploadId", u->id);
	if (!(rc = bucket_call(u->b, &c, err))) {
		etag = answer_header(&c.answer, "etag");
		if (!etag.len)
			rc = err_set(err, ERR_INVALID, "the store gives no ETag for a part");
		buf_printf(&u->list, "<Part><PartNumber>%u</PartNumber><ETag>", number);
		bucket_multipart_add_escaped(&u->list, etag);
		buf_add_cstr(&u->list, "</ETag></Part>");
	}
	answer_release(&c.answer);
	return rc;
}

/* Joining takes long, so a store answers 200 first and says later how it went. */
static enum err_code bucket_check_complete(struct bucket *b, struct bucket_call *c, struct err *err)
{
	struct xml_node *root;
	struct arena arena;
	enum err_code rc;

	arena_init(&arena, 0);
	rc = xml_parse(&arena, buf_str(&c->answer.body), &root, err);
	if (rc)
		rc = err_wrap(err, ERR_UNAVAILABLE, "the answer");
	else if (str_is(root->name, "Error"))
		rc = answer_judge_error(b, c, buf_str(&c->answer.body), err).rc;
	else if (!str_is(root->name, "CompleteMultipartUploadResult"))
		rc = err_set(err, ERR_INVALID, "the store answers with another XML");
	arena_release(&arena);
	return rc;
}

/* An attempt that got no answer may have joined the parts; then the upload is gone. */
static enum err_code bucket_multipart_upload_is_complete(
	struct bucket_multipart_upload *u, struct err *err)
{
	struct bucket_call c = {
		.operation = "head", .right = "s3:GetObject", .method = "HEAD", .key = u->key
	};
	enum err_code rc = bucket_call(u->b, &c, err);

	if (!rc && !str_is(answer_header(&c.answer, META_PUT), u->name))
		rc = err_set(err, ERR_UNAVAILABLE, "another object is there");
	answer_release(&c.answer);
	return rc;
}

static enum err_code bucket_multipart_memory_read(
	void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	memcpy(to, ((const struct buf *)ctx)->ptr + at, n);
	return ERR_OK;
}

static enum err_code bucket_multipart_upload_complete(
	struct bucket_multipart_upload *u, struct err *err)
{
	char hash[SIGV4_HASH_LEN + 1];
	struct http_body_source source = { 0, bucket_multipart_memory_read, &u->list };
	struct bucket_call c = { .operation = "end_upload",
		.right = RIGHT,
		.method = "POST",
		.key = u->key,
		.source = &source,
		.payload_hash = hash,
		.check = bucket_check_complete };
	enum err_code rc;

	buf_add_cstr(&u->list, "</CompleteMultipartUpload>");
	if (buf_failed(&u->list))
		return err_nomem(err, "list of parts");
	source.bytes = u->list.len;
	sigv4_hash(buf_str(&u->list), hash);
	call_query(&c, "uploadId", u->id);
	rc = bucket_call(u->b, &c, err);
	if (rc && strcmp(c.code, "NoSuchUpload") == 0 && !bucket_multipart_upload_is_complete(u, NULL))
		rc = ERR_OK;
	answer_release(&c.answer);
	return rc;
}

static void bucket_multipart_upload_abort(struct bucket_multipart_upload *u)
{
	struct bucket_call c = { .operation = "abort_upload",
		.right = "s3:AbortMultipartUpload",
		.method = "DELETE",
		.key = u->key };
	struct err err;

	call_query(&c, "uploadId", u->id);
	if (bucket_call(u->b, &c, &err) && strcmp(c.code, "NoSuchUpload") != 0)
		log_warn("bucket", "parts of a failed upload stay in the bucket", LOG_STR("key", u->key),
			LOG_E(&err));
	answer_release(&c.answer);
}

static enum err_code bucket_multipart_upload_put_parts(
	struct bucket_multipart_upload *u, int fd, uint64_t bytes, struct err *err)
{
	enum err_code rc = ERR_OK;
	unsigned number = 1;

	buf_add_cstr(&u->list, "<CompleteMultipartUpload>");
	for (uint64_t at = 0; !rc && at < bytes; at += u->part_bytes) {
		struct file_part part = { fd, at };

		rc = bucket_multipart_upload_put_part(
			u, number++, &part, bytes - at < u->part_bytes ? bytes - at : u->part_bytes, err);
	}
	return rc;
}

enum err_code multipart_put(
	struct bucket *b, struct str key, int fd, uint64_t bytes, struct err *err)
{
	struct bucket_multipart_upload u = { .b = b, .key = key, .part_bytes = b->c.part_bytes };
	struct file_part whole = { fd, 0 };
	enum err_code rc;

	while (bytes / u.part_bytes >= PARTS_MAX)
		u.part_bytes *= 2;
	if ((rc = file_part_hash(&whole, bytes, u.hash, err)))
		return err_wrap(err, rc, "put " STR_FMT, STR_ARG(key));
	arena_init(&u.arena, 0);
	put_name(u.name);
	if (!(rc = bucket_multipart_upload_begin(&u, err))) {
		if ((rc = bucket_multipart_upload_put_parts(&u, fd, bytes, err)) ||
			(rc = bucket_multipart_upload_complete(&u, err)))
			bucket_multipart_upload_abort(&u);
	}
	buf_release(&u.list);
	arena_release(&u.arena);
	return rc;
}
