/*
 * Tables of a store: are they the store's own?
 *
 * MANIFEST has the size and the first and last key of each table, with their sequence numbers,
 * which no other table of the store has. LevelDB shows what it read of it in its property
 * "leveldb.sstables", a line " number:size['first' @ sequence : type .. 'last' @ sequence : type]"
 * per table; here that line is made of the table itself.
 */
extern "C" {
#include "tsdb/store/store.h"
}

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>

/* LevelDB's C interface hands an Env over in this. */
struct leveldb_env_t {
	leveldb::Env *rep;
	bool is_default;
};

namespace
{

/* As LevelDB's EscapeString. */
void store_tables_add_escaped(std::string *out, const leveldb::Slice &text)
{
	char hex[8];

	for (size_t i = 0; i < text.size(); i++) {
		if (text[i] >= ' ' && text[i] <= '~') {
			out->push_back(text[i]);
			continue;
		}
		snprintf(hex, sizeof(hex), "\\x%02x", (unsigned char)text[i]);
		out->append(hex);
	}
}

/* An internal key: the key, then 8 bytes little-endian of sequence x 256 + type (0: deleted, 1: a
 * value). */
struct store_tables_key {
	std::string user;
	uint64_t tail = 0;
};

bool store_tables_parse(const leveldb::Slice &key, store_tables_key *out)
{
	if (key.size() < 8)
		return false;
	out->user.assign(key.data(), key.size() - 8);
	out->tail = 0;
	for (size_t i = 0; i < 8; i++)
		out->tail |= (uint64_t)(unsigned char)key[key.size() - 8 + i] << (8 * i);
	return (out->tail & 255) <= 1;
}

/* Of one key the newest is first. */
bool store_tables_ascend(const store_tables_key &a, const store_tables_key &b)
{
	const int order = a.user.compare(b.user);

	return order < 0 || (order == 0 && a.tail > b.tail);
}

bool store_tables_add_key(std::string *out, const leveldb::Slice &key)
{
	store_tables_key k;
	char text[64];

	if (!store_tables_parse(key, &k))
		return false;
	out->push_back('\'');
	store_tables_add_escaped(out, k.user);
	snprintf(text, sizeof(text), "' @ %" PRIu64 " : %d", k.tail >> 8, (int)(k.tail & 255));
	out->append(text);
	return true;
}

struct store_tables_open {
	std::unique_ptr<leveldb::RandomAccessFile> file; /* behind its table */
	std::unique_ptr<leveldb::Table> table;
};

leveldb::Status store_tables_open_one(
	leveldb::Env *env, const std::string &path, store_tables_open *out, uint64_t *size)
{
	leveldb::RandomAccessFile *file = nullptr;
	leveldb::Table *table = nullptr;
	leveldb::Options options;
	leveldb::Status s = env->GetFileSize(path, size);

	if (s.ok())
		s = env->NewRandomAccessFile(path, &file);
	out->file.reset(file);
	options.env = env;
	options.paranoid_checks = true;
	if (s.ok())
		s = leveldb::Table::Open(options, file, *size, &table);
	out->table.reset(table);
	return s;
}

/* A page at either end that cannot be read does not identify the table. */
leveldb::Status store_tables_describe(leveldb::Env *env, const std::string &path,
	std::string *first, std::string *last, uint64_t *size)
{
	store_tables_open t;
	leveldb::ReadOptions read;
	leveldb::Status s = store_tables_open_one(env, path, &t, size);

	if (!s.ok())
		return s;
	read.verify_checksums = true;
	read.fill_cache = false;
	std::unique_ptr<leveldb::Iterator> it(t.table->NewIterator(read));
	it->SeekToFirst();
	if (it->status().ok() && (!it->Valid() || !store_tables_add_key(first, it->key())))
		return leveldb::Status::Corruption("no first key");
	it.reset(t.table->NewIterator(read));
	it->SeekToLast();
	if (it->status().ok() && (!it->Valid() || !store_tables_add_key(last, it->key())))
		return leveldb::Status::Corruption("no last key");
	return leveldb::Status::OK();
}

/* line: from the number to the closing bracket. */
enum err_code store_tables_check_one(
	leveldb::Env *env, const std::string &dir, const std::string &line, struct err *err)
{
	unsigned long long number = 0, bytes = 0;
	std::string first, last, path;
	uint64_t size = 0;
	char name[40];

	if (sscanf(line.c_str(), "%llu:%llu[", &number, &bytes) != 2)
		return ERR_OK;
	snprintf(name, sizeof(name), "/%06llu.ldb", number);
	path = dir + name;
	if (!env->FileExists(path))
		return ERR_OK; /* LevelDB says so itself when it opens */
	const leveldb::Status s = store_tables_describe(env, path, &first, &last, &size);
	if (!s.ok())
		return err_set(
			err, ERR_CORRUPT, "store %s: %s: %s", dir.c_str(), name + 1, s.ToString().c_str());
	const std::string head = line.substr(0, line.find('[') + 1);
	const std::string tail = last + "]";
	const bool same = size == bytes &&
		(first.empty() ||
			line.compare(0, head.size() + first.size() + 4, head + first + " .. ") == 0) &&
		(last.empty() ||
			(line.size() >= tail.size() &&
				line.compare(line.size() - tail.size(), tail.size(), tail) == 0));
	return same ? ERR_OK :
				  err_set(err, ERR_CORRUPT, "store %s: %s is another table", dir.c_str(), name + 1);
}

/* A table of something else, whole or in part: LevelDB would abort at its keys. One that cannot be
 * opened, and pages that cannot be read, it sorts out itself. */
bool store_tables_is_foreign(leveldb::Env *env, const std::string &path)
{
	store_tables_open t;
	leveldb::ReadOptions read;
	store_tables_key key, before;
	uint64_t size;
	bool any = false;

	if (!store_tables_open_one(env, path, &t, &size).ok())
		return false;
	read.verify_checksums = true;
	read.fill_cache = false;
	const std::unique_ptr<leveldb::Iterator> it(t.table->NewIterator(read));
	for (it->SeekToFirst(); it->Valid(); it->Next()) {
		if (!store_tables_parse(it->key(), &key) || (any && !store_tables_ascend(before, key)))
			return true;
		std::swap(before, key);
		any = true;
	}
	return !any && it->status().ok();
}

bool store_tables_has_suffix(const std::string &name, const char *suffix)
{
	const size_t n = strlen(suffix);

	return name.size() > n && name.compare(name.size() - n, n, suffix) == 0;
}

/* LevelDB's numbers begin with 1, and it aborts at a log or table whose name says 0. */
bool store_tables_has_no_number(const std::string &name)
{
	return name.find_first_not_of('0') == name.rfind('.') && name[0] == '0' &&
		(store_tables_has_suffix(name, ".log") || store_tables_has_suffix(name, ".ldb") ||
			store_tables_has_suffix(name, ".sst"));
}

} // namespace

enum err_code store_check_names(const char *dir, struct err *err)
{
	leveldb::Env *env = static_cast<leveldb_env_t *>(store_env())->rep;
	std::vector<std::string> names;

	if (!env->GetChildren(dir, &names).ok())
		return ERR_OK; /* LevelDB says what is wrong */
	for (size_t i = 0; i < names.size(); i++)
		if (store_tables_has_no_number(names[i]))
			return err_set(err, ERR_CORRUPT, "store %s: no file of LevelDB has the name %s", dir,
				names[i].c_str());
	return ERR_OK;
}

enum err_code store_set_foreign_aside(const char *dir, struct err *err)
{
	leveldb::Env *env = static_cast<leveldb_env_t *>(store_env())->rep;
	const std::string in = dir, lost = in + "/lost";
	std::vector<std::string> names;
	leveldb::Status s = env->GetChildren(in, &names);

	for (size_t i = 0; i < names.size() && s.ok(); i++) {
		const bool table = store_tables_has_suffix(names[i], ".ldb") ||
			store_tables_has_suffix(names[i], ".sst");

		if (!store_tables_has_no_number(names[i]) &&
			!(table && store_tables_is_foreign(env, in + "/" + names[i])))
			continue;
		(void)env->CreateDir(lost); /* where it is missing: else renaming fails */
		s = env->RenameFile(in + "/" + names[i], lost + "/" + names[i]);
	}
	return s.ok() ? ERR_OK : err_set(err, ERR_IO, "store %s: %s", dir, s.ToString().c_str());
}

enum err_code store_check_tables(struct store *s, struct err *err)
{
	leveldb::Env *env = static_cast<leveldb_env_t *>(store_env())->rep;
	char *property = store_property(s, "leveldb.sstables");
	std::string text = property ? property : "";
	size_t at = 0, end = 0;
	enum err_code rc = ERR_OK;

	free(property);
	for (; at < text.size() && rc == ERR_OK; at = end + 1) {
		end = text.find('\n', at);
		if (end == std::string::npos)
			end = text.size();
		if (text[at] == ' ')
			rc = store_tables_check_one(env, store_dir(s), text.substr(at + 1, end - at - 1), err);
	}
	return rc;
}
