#include "cmd/epitool/debuginfo/native_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASHED_BYTES 4096u
#define FILE_ID_BYTES 16u

static enum err_code native_file_set_id(struct native_file *f, struct err *err)
{
	size_t n = f->bytes.len < HASHED_BYTES ? f->bytes.len : HASHED_BYTES;
	unsigned char length[8], sum[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok;

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)f->bytes.len >> (56 - 8 * i));
	ok = c && EVP_DigestInit_ex(c, EVP_sha256(), NULL) && EVP_DigestUpdate(c, f->bytes.ptr, n) &&
		EVP_DigestUpdate(c, f->bytes.ptr + f->bytes.len - n, n) &&
		EVP_DigestUpdate(c, length, sizeof(length)) && EVP_DigestFinal_ex(c, sum, NULL);
	EVP_MD_CTX_free(c);
	if (!ok)
		return err_nomem(err, "SHA-256");
	ok = debuginfo_id_of_bytes(
		&f->ids[DEBUGINFO_FILE], DEBUGINFO_FILE, (struct str){ (const char *)sum, FILE_ID_BYTES });
	assert(ok);
	return ERR_OK;
}

static enum err_code native_file_map(const char *path, struct native_file *f, struct err *err)
{
	struct stat st;
	void *p;

	if ((f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0 || fstat(f->fd, &st))
		return err_errno(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s: not a file", path);
	if (!st.st_size)
		return err_set(err, ERR_INVALID, "%s: the file is empty", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (p == MAP_FAILED)
		return err_errno(err, errno, "%s", path);
	f->bytes = (struct str){ p, (size_t)st.st_size };
	return ERR_OK;
}

/* Small wherever there is DWARF; symbols and Go's tables alone are called stripped. */
static enum err_code native_file_set_kind(struct native_file *f, struct err *err)
{
	struct str abbrev;
	enum err_code rc = elf_section(f->elf, ".debug_abbrev", &abbrev, err);

	f->kind = !abbrev.len                  ? DEBUGINFO_STRIPPED :
		elf_content(f->elf) == ELF_NO_TEXT ? DEBUGINFO_NO_TEXT :
											 DEBUGINFO_FULL;
	return rc;
}

static enum err_code native_file_open_as(
	const char *path, bool part, struct native_file *f, struct err *err)
{
	struct str go;
	enum err_code rc;

	*f = (struct native_file){ .fd = -1 };
	if ((rc = native_file_map(path, f, err)))
		goto fail;
	rc = part ? elf_open_split(f->bytes, &elf_limits_default, &f->elf, err) :
				elf_open(f->bytes, &f->elf, err);
	if (rc || (rc = native_file_set_kind(f, err)) || (rc = native_file_set_id(f, err))) {
		err_wrap(err, rc, "%s", path);
		goto fail;
	}
	(void)!debuginfo_id_of_bytes(&f->ids[DEBUGINFO_GNU], DEBUGINFO_GNU, elf_build_id(f->elf));
	go = elf_go_build_id(f->elf);
	if (go.len && debuginfo_id_init(&f->ids[DEBUGINFO_GO], DEBUGINFO_GO, go, NULL))
		f->ids[DEBUGINFO_GO].len = 0;
	return ERR_OK;
fail:
	native_file_close(f);
	return rc;
}

enum err_code native_file_open(const char *path, struct native_file *f, struct err *err)
{
	return native_file_open_as(path, false, f, err);
}

enum err_code native_file_open_part(const char *path, struct native_file *f, struct err *err)
{
	return native_file_open_as(path, true, f, err);
}

void native_file_close(struct native_file *f)
{
	elf_close(f->elf);
	f->elf = NULL;
	if (f->bytes.len)
		munmap((void *)(uintptr_t)f->bytes.ptr, f->bytes.len);
	f->bytes = STR("");
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

bool native_file_is_program(const struct native_file *f)
{
	struct elf_load load;
	uint64_t at = 0;

	return elf_load_next(f->elf, &at, &load);
}

const struct debuginfo_id *native_file_id(const struct native_file *f)
{
	for (int kind = 0; kind < DEBUGINFO_FILE; kind++)
		if (f->ids[kind].len)
			return &f->ids[kind];
	return &f->ids[DEBUGINFO_FILE];
}
