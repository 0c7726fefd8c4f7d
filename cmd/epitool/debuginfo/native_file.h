/*
 * A file of native code on this machine: what it is called, and which symbols it has.
 *
 * Errors:    ERR_INVALID, ERR_UNSUPPORTED: no ELF file, or none with symbols; ERR_IO,
 *            ERR_NOT_FOUND.
 * Ownership: the caller's memory; native_file_close.
 * Threads:   one.
 * Source:    the file id: go.opentelemetry.io/ebpf-profiler, libpf.FileID: SHA-256 of the first
 *            4096 bytes, the last 4096 bytes and the length, of which 16 bytes.
 */
#ifndef CMD_EPITOOL_DEBUGINFO_NATIVE_FILE_H
#define CMD_EPITOOL_DEBUGINFO_NATIVE_FILE_H

#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/store/store.h"

struct native_file {
	int fd;
	struct str bytes; /* mapped */
	struct elf *elf;
	struct debuginfo_id ids[DEBUGINFO_ID_KINDS]; /* len 0: it has none; a file id is always there */
	enum debuginfo_kind kind; /* stripped: without DWARF */
};

MUST_CHECK enum err_code native_file_open(const char *path, struct native_file *f, struct err *err);
/* Also an object file, which has units of split DWARF (-gsplit-dwarf=single). */
MUST_CHECK enum err_code native_file_open_part(
	const char *path, struct native_file *f, struct err *err);
void native_file_close(struct native_file *f);
/*
 * False: it has no segments, so it is nothing that runs, but a part of others' debug data: .dwo,
 * .dwp, dwz's common file. It goes with the program that it belongs to.
 */
bool native_file_is_program(const struct native_file *f);
/* What profiles name it by: GNU's id, Go's, else the file id. */
const struct debuginfo_id *native_file_id(const struct native_file *f);

#endif
