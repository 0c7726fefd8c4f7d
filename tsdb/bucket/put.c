/*
 * Puts. Each carries the hash of its bytes: the store compares it (x-amz-content-sha256), and keeps
 * it with the object for those who get it (META_HASH).
 *
 * A put with a condition also carries a name of its own (META_PUT). When an attempt ended without
 * an answer and the next one finds that the condition does not hold, the object that is there may
 * be ours: its name says so.
 */
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tsdb/bucket/internal.h"

#define FILE_PIECE_BYTES (256u << 10)

/* ---- bodies ---- */

static enum err_code put_memory_read(void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	const struct str *bytes = ctx;

	memcpy(to, bytes->ptr + at, n);
	return ERR_OK;
}

enum err_code file_part_read(void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	const struct file_part *p = ctx;
	ssize_t got;

	while (n) {
		got = pread(p->fd, to, n, (off_t)(p->from + at));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "read the file");
		if (!got)
			return err_set(err, ERR_IO, "the file has become shorter");
		to += got;
		at += (uint64_t)got;
		n -= (size_t)got;
	}
	return ERR_OK;
}

enum err_code file_part_hash(
	struct file_part *p, uint64_t bytes, char out[SIGV4_HASH_LEN + 1], struct err *err)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char digest[EVP_MAX_MD_SIZE];
	struct buf piece = { 0 };
	enum err_code rc = ERR_OK;
	unsigned n = 0;

	if (!md || !buf_reserve(&piece, FILE_PIECE_BYTES) ||
		EVP_DigestInit_ex(md, EVP_sha256(), NULL) != 1)
		rc = err_nomem(err, "hash");
	for (uint64_t at = 0; !rc && at < bytes; at += FILE_PIECE_BYTES) {
		size_t take = bytes - at < FILE_PIECE_BYTES ? (size_t)(bytes - at) : FILE_PIECE_BYTES;

		if (!(rc = file_part_read(p, at, piece.ptr, take, err)))
			EVP_DigestUpdate(md, piece.ptr, take);
	}
	if (!rc && (EVP_DigestFinal_ex(md, digest, &n) != 1 || 2 * n != SIGV4_HASH_LEN))
		rc = err_nomem(err, "hash");
	for (unsigned i = 0; !rc && i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	EVP_MD_CTX_free(md);
	buf_release(&piece);
	return rc;
}

enum err_code bucket_file_hash(int fd, char out[BUCKET_HASH_LEN + 1], struct err *err)
{
	struct file_part whole = { fd, 0 };
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(err, errno, "hash");
	return file_part_hash(&whole, (uint64_t)st.st_size, out, err);
}

/* ---- put ---- */

void put_name(char out[PUT_NAME_LEN + 1])
{
	unsigned char bytes[PUT_NAME_LEN / 2] = { 0 };

	RAND_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

struct put {
	char name[PUT_NAME_LEN + 1]; /* "": without a condition */
	char hash[SIGV4_HASH_LEN + 1];
	struct str bytes;
	enum bucket_condition condition;
	struct str if_etag; /* as it was given */
	char there[BUCKET_ETAG_BYTES_MAX]; /* of the object that is there instead; "": not known */
};

static void bucket_learn_etag(struct bucket *b, const struct bucket_answer *a, struct str bytes)
{
	struct str etag = answer_header(a, "etag");

	if (b->etag_kind == ETAG_OTHER || !etag.len)
		return;
	b->etag_kind = etag_is_md5_of(etag, bytes) ? ETAG_MD5 : ETAG_OTHER;
}

static void put_give_etag(const struct bucket_answer *a, char *etag)
{
	struct bucket_info info;

	bucket_read_info(a, &info);
	if (etag)
		memcpy(etag, info.etag, sizeof(info.etag));
}

/* The condition does not hold any more: is it our own object that is there? */
static enum err_code bucket_find_own(
	struct bucket *b, struct str key, struct put *p, char *etag, struct err *err)
{
	struct bucket_call c = {
		.operation = "head", .right = "s3:GetObject", .method = "HEAD", .key = key
	};
	enum err_code rc = bucket_call(b, &c, err);

	if (!rc && str_is(answer_header(&c.answer, META_PUT), p->name)) {
		put_give_etag(&c.answer, etag);
	} else if (!rc || rc == ERR_NOT_FOUND) {
		if (!rc)
			put_give_etag(&c.answer, p->there);
		rc = ERR_EXISTS;
	}
	answer_release(&c.answer);
	return rc;
}

static enum err_code bucket_run_put(struct bucket *b, struct bucket_call *c, struct put *p,
	const struct str *bytes, char *etag, struct err *err)
{
	enum err_code rc = bucket_call(b, c, err);
	struct err why;

	if (!rc && bytes)
		bucket_learn_etag(b, &c->answer, *bytes);
	if (!rc)
		put_give_etag(&c->answer, etag);
	if (rc == ERR_NOT_FOUND) { /* If-Match where there is none */
		rc = ERR_EXISTS;
		if (err)
			err->code = rc;
	}
	if (rc != ERR_EXISTS || !p->name[0])
		return rc;
	/* also after one attempt: a connection that was closed may have taken it */
	rc = bucket_find_own(b, c->key, p, etag, &why);
	return rc && rc != ERR_EXISTS ? err_copy(err, &why) : rc;
}

static struct str put_without_quotes(struct str etag)
{
	if (etag.len > 2 && etag.ptr[0] == '"' && etag.ptr[etag.len - 1] == '"')
		return (struct str){ etag.ptr + 1, etag.len - 2 };
	return etag;
}

static enum err_code put_bytes(
	struct bucket *b, struct str key, struct put *p, bool bare, char *etag, struct err *err)
{
	const struct http_body_source source = { p->bytes.len, put_memory_read, &p->bytes };
	struct bucket_call c = { .operation = "put",
		.right = "s3:PutObject",
		.method = "PUT",
		.key = key,
		.source = &source,
		.payload_hash = p->hash,
		.bytes = p->bytes.len };
	enum err_code rc;

	call_header(&c, META_HASH, str_of(p->hash));
	if (p->condition != BUCKET_ANY)
		call_header(&c, META_PUT, str_of(p->name));
	if (p->condition == BUCKET_IF_ABSENT)
		call_header(&c, "if-none-match", STR("*"));
	if (p->condition == BUCKET_IF_ETAG)
		call_header(&c, "if-match", bare ? put_without_quotes(p->if_etag) : p->if_etag);
	rc = bucket_run_put(b, &c, p, &p->bytes, etag, err);
	answer_release(&c.answer);
	return rc;
}

enum err_code bucket_put(struct bucket *b, struct str key, struct str bytes,
	enum bucket_condition condition, const char *if_etag, char *etag, struct err *err)
{
	struct put p = { .bytes = bytes, .condition = condition };
	bool bare = b->bare_etags;
	enum err_code rc;

	if ((rc = bucket_check_key(key, err)))
		return rc;
	sigv4_hash(bytes, p.hash);
	if (condition != BUCKET_ANY)
		put_name(p.name);
	if (condition == BUCKET_IF_ETAG)
		p.if_etag = str_of(if_etag);
	rc = put_bytes(b, key, &p, bare, etag, err);
	/* The object has the wanted ETag: the store compares the other form, so that form is sent. */
	if (rc == ERR_EXISTS && condition == BUCKET_IF_ETAG && str_is(p.if_etag, p.there)) {
		rc = put_bytes(b, key, &p, !bare, etag, err);
		if (!rc)
			b->bare_etags = !bare;
	}
	return rc;
}

enum err_code bucket_put_file(struct bucket *b, struct str key, int fd, struct err *err)
{
	struct file_part part = { fd, 0 };
	struct http_body_source source = { 0, file_part_read, &part };
	struct put p = { .name = "" };
	struct bucket_call c = { .operation = "put",
		.right = "s3:PutObject",
		.method = "PUT",
		.key = key,
		.source = &source,
		.payload_hash = p.hash };
	struct stat st;
	enum err_code rc;

	if ((rc = bucket_check_key(key, err)))
		return rc;
	if (fstat(fd, &st))
		return err_errno(err, errno, "put " STR_FMT, STR_ARG(key));
	if ((uint64_t)st.st_size > b->c.part_bytes)
		return multipart_put(b, key, fd, (uint64_t)st.st_size, err);
	source.bytes = c.bytes = (uint64_t)st.st_size;
	if ((rc = file_part_hash(&part, source.bytes, p.hash, err)))
		return err_wrap(err, rc, "put " STR_FMT, STR_ARG(key));
	call_header(&c, META_HASH, str_of(p.hash));
	rc = bucket_run_put(b, &c, &p, NULL, NULL, err);
	answer_release(&c.answer);
	return rc;
}
