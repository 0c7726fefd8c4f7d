#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

#include <leveldb/env.h>

#include "tests/tsdb/disk_tree.h"

extern "C" {
#include "tests/tsdb/disk.h"
}

using leveldb::Slice;
using leveldb::Status;

extern "C" const char *const disk_kind_names[DISK_KINDS] = { "open", "write", "sync", "rename",
	"unlink", "mkdir", "rmdir", "sync_dir" };

class disk_env;

// LevelDB's C interface hands an Env over in this.
struct leveldb_env_t {
	leveldb::Env *rep;
	bool is_default;
};

struct disk_fs_of {
	struct fs fs; // first: struct fs * is what the calls get
	struct disk *disk;
};

struct disk {
	explicit disk(const char *dir) : tree(dir) {}

	disk_fs_of fs;
	struct store_ops store;
	leveldb_env_t env;
	std::unique_ptr<disk_env> files;

	std::mutex lock; // all below
	disk_tree tree;
	std::map<int, disk_node *> fds;
	uint64_t operations = 0, cut_at = 0; // cut_at 0: never
	bool cut = false;
	uint64_t done[DISK_KINDS] = {};
	uint64_t fail_at = 0, failed = 0; // fail_at 0: never
	enum disk_kind fail_kind = DISK_OPEN;
	unsigned fail_how = 0;
	uint64_t room = UINT64_MAX;
	bool trace = getenv("EPI_DISK_TRACE") != nullptr;

	// errno of why the operation fails, or 0. *part: it is to be done all the same, as far as
	// it can be: the power went while it was under way. EPI_DISK_TRACE says each.
	int refuse(enum disk_kind kind, const std::string &path, bool *part);
	int decide(enum disk_kind kind, bool *part);
	int write(disk_node *file, uint64_t at, const char *p, size_t n, size_t *written);
	int sync(disk_node *file);
	int sync_dir(const std::string &path);
	int unlink(const std::string &path, bool is_dir);
	int rename(const std::string &from, const std::string &to);
	int mkdir(const std::string &path);
};

int disk::refuse(enum disk_kind kind, const std::string &path, bool *part)
{
	int e = decide(kind, part);

	if (trace)
		fprintf(stderr, "disk: %s %d %s: %s\n", disk_kind_names[kind], (int)done[kind],
			path.c_str(), e ? strerror(e) : "ok");
	return e;
}

int disk::decide(enum disk_kind kind, bool *part)
{
	operations++;
	done[kind]++;
	*part = false;
	if (cut)
		return EIO;
	if (cut_at && operations >= cut_at) {
		cut = *part = true;
		return EIO;
	}
	if (!fail_at || kind != fail_kind || done[kind] < fail_at)
		return 0;
	if (done[kind] > fail_at && !(fail_how & DISK_FROM_THEN_ON))
		return 0;
	failed++;
	return EIO;
}

// *written: how much of it the caller has to write to the real file, also where it fails.
int disk::write(disk_node *file, uint64_t at, const char *p, size_t n, size_t *written)
{
	bool part;
	int e = refuse(DISK_WRITE, tree.path_of(file), &part);
	uint64_t more = at + n > file->size ? at + n - file->size : 0;

	*written = 0;
	if (e && !part && !(fail_at && fail_how & DISK_TORN && !cut))
		return e;
	if (e && !part)
		n /= 2;
	if (!e && more > room) {
		n -= more - room;
		e = ENOSPC;
	}
	more = at + n > file->size ? at + n - file->size : 0;
	if (room != UINT64_MAX)
		room -= more < room ? more : room;
	tree.write(file, at, p, n);
	*written = n;
	return e;
}

int disk::sync(disk_node *file)
{
	bool part;
	int e = refuse(DISK_SYNC, tree.path_of(file), &part);

	if (!e)
		tree.sync(file);
	else if (!part)
		tree.sync_failed(file);
	return e;
}

int disk::sync_dir(const std::string &path)
{
	bool part;
	int e = refuse(DISK_SYNC_DIR, path, &part);
	disk_node *dir = tree.find(path);

	if (!e && !dir)
		e = ENOENT;
	if (!e)
		tree.sync_dir(dir);
	return e;
}

int disk::unlink(const std::string &path, bool is_dir)
{
	disk_node *node = tree.find(path);
	uint64_t size = node ? node->size : 0;
	bool part;
	int e = refuse(is_dir ? DISK_RMDIR : DISK_UNLINK, path, &part);

	if (e && !part)
		return e;
	if (is_dir ? ::rmdir(path.c_str()) : ::unlink(path.c_str()))
		return errno;
	tree.unlink(path);
	if (room != UINT64_MAX)
		room += size;
	return e;
}

int disk::rename(const std::string &from, const std::string &to)
{
	bool part;
	int e = refuse(DISK_RENAME, from + " to " + to, &part);

	if (e && !part)
		return e;
	if (::rename(from.c_str(), to.c_str()))
		return errno;
	tree.rename(from, to);
	return e;
}

int disk::mkdir(const std::string &path)
{
	struct stat st;
	bool part;
	int e;

	if (stat(path.c_str(), &st) == 0)
		return S_ISDIR(st.st_mode) ? EEXIST : ENOTDIR;
	e = refuse(DISK_MKDIR, path, &part);
	if (e && !part)
		return e;
	if (::mkdir(path.c_str(), 0755))
		return errno;
	tree.create(path, true);
	return e;
}

// ---- for LevelDB ----

static Status status_of(const std::string &path, int e)
{
	if (!e)
		return Status::OK();
	return e == ENOENT ? Status::NotFound(path, strerror(e)) : Status::IOError(path, strerror(e));
}

class disk_file : public leveldb::WritableFile
{
  public:
	disk_file(disk *d, disk_node *node, const std::string &path, leveldb::WritableFile *real)
		: disk_(d), node_(node), path_(path), real_(real)
	{
		size_t slash = path.rfind('/') + 1;

		if (path.compare(slash, 8, "MANIFEST") == 0)
			manifest_dir_ = path.substr(0, slash);
	}

	Status Append(const Slice &data) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);
		size_t n;
		int e = disk_->write(node_, node_->size, data.data(), data.size(), &n);
		Status s = real_->Append(Slice(data.data(), n));

		return s.ok() ? status_of(path_, e) : s;
	}
	Status Close() override { return real_->Close(); }
	Status Flush() override { return real_->Flush(); }

	// As in LevelDB's Env: a MANIFEST syncs its directory first. No real sync is done.
	Status Sync() override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);
		int e = manifest_dir_.empty() ? 0 : disk_->sync_dir(manifest_dir_);
		Status s = real_->Flush();

		if (!e && s.ok())
			e = disk_->sync(node_);
		return s.ok() ? status_of(path_, e) : s;
	}

  private:
	disk *disk_;
	disk_node *node_;
	std::string path_, manifest_dir_;
	std::unique_ptr<leveldb::WritableFile> real_;
};

class no_logger : public leveldb::Logger
{
  public:
	void Logv(const char *format, va_list ap) override {}
};

class disk_env : public leveldb::EnvWrapper
{
  public:
	explicit disk_env(disk *d) : EnvWrapper(leveldb::Env::Default()), disk_(d) {}

	Status NewWritableFile(const std::string &path, leveldb::WritableFile **out) override
	{
		return open_file(path, true, out);
	}
	Status NewAppendableFile(const std::string &path, leveldb::WritableFile **out) override
	{
		return open_file(path, false, out);
	}
	Status RemoveFile(const std::string &path) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);

		return status_of(path, disk_->unlink(path, false));
	}
	Status CreateDir(const std::string &path) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);

		return status_of(path, disk_->mkdir(path));
	}
	Status RemoveDir(const std::string &path) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);

		return status_of(path, disk_->unlink(path, true));
	}
	Status RenameFile(const std::string &from, const std::string &to) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);

		if (!FileExists(from))
			return status_of(from, ENOENT);
		return status_of(from, disk_->rename(from, to));
	}
	// Every opening begins with it; a repair does not come through here, so what it did is
	// looked at.
	Status LockFile(const std::string &path, leveldb::FileLock **lock) override
	{
		std::lock_guard<std::mutex> hold(disk_->lock);
		Status s = target()->LockFile(path, lock);
		disk_node *dir = disk_->tree.find(path.substr(0, path.rfind('/')));

		if (dir)
			disk_->tree.look_again(dir);
		return s;
	}
	Status NewLogger(const std::string &, leveldb::Logger **out) override
	{
		*out = new no_logger;
		return Status::OK();
	}

  private:
	Status open_file(const std::string &path, bool anew, leveldb::WritableFile **out)
	{
		std::lock_guard<std::mutex> hold(disk_->lock);
		leveldb::WritableFile *real;
		disk_node *node;
		bool part;
		int e = disk_->refuse(DISK_OPEN, path, &part);

		*out = nullptr;
		if (e && !part)
			return status_of(path, e);
		Status s = anew ? target()->NewWritableFile(path, &real) :
						  target()->NewAppendableFile(path, &real);
		if (!s.ok())
			return s;
		if (!(node = disk_->tree.find(path)))
			node = disk_->tree.create(path, false);
		else if (anew)
			disk_->tree.truncate(node, 0);
		if (e) {
			delete real;
			return status_of(path, e);
		}
		*out = new disk_file(disk_, node, path, real);
		return s;
	}

	disk *disk_;
};

// ---- for us ----

static struct disk *of(struct fs *fs)
{
	return ((disk_fs_of *)fs)->disk;
}

static enum err_code fs_open(
	struct fs *fs, const char *path, int flags, int mode, int *fd, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	bool part = false, writes = (flags & O_ACCMODE) != O_RDONLY;
	int e = writes ? d->refuse(DISK_OPEN, path, &part) : 0;
	enum err_code rc;
	disk_node *node;

	if (e && !part)
		return err_errno(err, e, "open %s", path);
	if ((rc = fs_posix.ops->open(&fs_posix, path, flags, mode, fd, err)))
		return rc;
	if (writes) {
		if (!(node = d->tree.find(path)))
			node = d->tree.create(path, false);
		else if (flags & O_TRUNC)
			d->tree.truncate(node, 0);
		d->fds[*fd] = node;
	}
	if (!e)
		return ERR_OK;
	close(*fd);
	return err_errno(err, e, "open %s", path);
}

static enum err_code fs_write(struct fs *fs, int fd, const void *p, size_t n, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	bool at_end = fcntl(fd, F_GETFL) & O_APPEND;
	disk_node *node = d->fds.at(fd);
	off_t at = at_end ? (off_t)node->size : lseek(fd, 0, SEEK_CUR);
	size_t written;
	int e = d->write(node, (uint64_t)at, (const char *)p, n, &written);
	enum err_code rc = fs_posix.ops->write(&fs_posix, fd, p, written, err);

	return rc || !e ? rc : err_errno(err, e, "write");
}

static enum err_code fs_sync(struct fs *fs, int fd, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->sync(d->fds.at(fd));

	return e ? err_errno(err, e, "sync") : ERR_OK;
}

static enum err_code fs_rename(struct fs *fs, const char *from, const char *to, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->rename(from, to);

	return e ? err_errno(err, e, "rename %s to %s", from, to) : ERR_OK;
}

static enum err_code fs_unlink(struct fs *fs, const char *path, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->unlink(path, false);

	return e ? err_errno(err, e, "remove %s", path) : ERR_OK;
}

static enum err_code fs_mkdir(struct fs *fs, const char *path, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->mkdir(path);

	return e && e != EEXIST ? err_errno(err, e, "create directory %s", path) : ERR_OK;
}

static enum err_code fs_rmdir(struct fs *fs, const char *path, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->unlink(path, true);

	return e ? err_errno(err, e, "remove directory %s", path) : ERR_OK;
}

static enum err_code fs_sync_dir(struct fs *fs, const char *path, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);
	int e = d->sync_dir(path);

	return e ? err_errno(err, e, "sync directory %s", path) : ERR_OK;
}

static enum err_code fs_free_bytes(struct fs *fs, const char *path, uint64_t *out, struct err *err)
{
	struct disk *d = of(fs);
	std::lock_guard<std::mutex> hold(d->lock);

	if (d->room == UINT64_MAX)
		return fs_posix.ops->free_bytes(&fs_posix, path, out, err);
	*out = d->room;
	return ERR_OK;
}

static const struct fs_ops disk_fs_ops = { fs_open, fs_write, fs_sync, fs_rename, fs_unlink,
	fs_mkdir, fs_rmdir, fs_sync_dir, fs_free_bytes, nullptr };

// ---- the disk ----

struct disk *disk_open(const char *dir)
{
	struct disk *d = new disk(dir);

	d->files = std::make_unique<disk_env>(d);
	d->env = { d->files.get(), true };
	d->fs = { { &disk_fs_ops }, d };
	d->store = store_leveldb;
	d->store.env = &d->env;
	return d;
}

void disk_close(struct disk *d)
{
	delete d;
}

struct fs *disk_fs(struct disk *d)
{
	return &d->fs.fs;
}

const struct store_ops *disk_store(struct disk *d)
{
	return &d->store;
}

uint64_t disk_bytes(struct disk *d)
{
	std::lock_guard<std::mutex> hold(d->lock);

	return d->tree.bytes();
}

void disk_power_cut(struct disk *d)
{
	std::lock_guard<std::mutex> hold(d->lock);

	d->cut = true;
}

void disk_power_cut_at(struct disk *d, uint64_t nth)
{
	std::lock_guard<std::mutex> hold(d->lock);

	d->cut_at = d->operations + nth;
}

bool disk_is_cut(struct disk *d)
{
	std::lock_guard<std::mutex> hold(d->lock);

	return d->cut;
}

void disk_restore(struct disk *d, uint64_t seed)
{
	std::lock_guard<std::mutex> hold(d->lock);

	d->fds.clear();
	d->tree.restore(seed);
	d->cut = false;
	d->cut_at = 0;
}

uint64_t disk_done(struct disk *d, enum disk_kind kind)
{
	std::lock_guard<std::mutex> hold(d->lock);

	return d->done[kind];
}

void disk_fail(struct disk *d, uint64_t nth, enum disk_kind kind, unsigned how)
{
	std::lock_guard<std::mutex> hold(d->lock);

	d->fail_at = nth ? d->done[kind] + nth : 0;
	d->fail_kind = kind;
	d->fail_how = how;
	if (nth)
		d->failed = 0;
}

uint64_t disk_failed(struct disk *d)
{
	std::lock_guard<std::mutex> hold(d->lock);

	return d->failed;
}

void disk_full(struct disk *d, uint64_t bytes)
{
	std::lock_guard<std::mutex> hold(d->lock);

	d->room = bytes;
}
