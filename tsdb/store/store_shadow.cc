/*
 * A store on a full disk. LevelDB cannot open a directory without writing to it: the
 * log becomes a table, MANIFEST and CURRENT are made anew, old files are removed. Here all of that
 * happens in memory: written files are kept there, removed files are hidden, and the directory
 * stays as it is. Reads come from memory or from the disk.
 *
 * LevelDB would also join tables, and read half of a window into memory for it: beyond a bound
 * writing fails, which stops that and nothing else.
 */
extern "C" {
#include "tsdb/store/store.h"
}

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include <leveldb/env.h>

#define SHADOW_BYTES_MAX (64u << 20)

/* LevelDB's C interface hands an Env over in this. */
struct leveldb_env_t {
	leveldb::Env *rep;
	bool is_default;
};

namespace
{

using leveldb::Slice;
using leveldb::Status;

struct content {
	std::string bytes;
};
using content_ptr = std::shared_ptr<content>;

/* A table is read when it is whole, a log and MANIFEST are only written. */
class memory_reader final : public leveldb::SequentialFile, public leveldb::RandomAccessFile
{
  public:
	explicit memory_reader(content_ptr c) : c_(std::move(c)) {}

	Status Read(size_t n, Slice *result, char *scratch) override
	{
		Status s = Read(at_, n, result, scratch);

		at_ += result->size();
		return s;
	}

	Status Skip(uint64_t n) override
	{
		at_ += n;
		return Status::OK();
	}

	Status Read(uint64_t offset, size_t n, Slice *result, char *scratch) const override
	{
		size_t from = offset < c_->bytes.size() ? (size_t)offset : c_->bytes.size(),
			   left = c_->bytes.size() - from;

		(void)scratch;
		*result = Slice(c_->bytes.data() + from, n < left ? n : left);
		return Status::OK();
	}

  private:
	content_ptr c_;
	uint64_t at_ = 0;
};

class shadow_env;

class memory_writer final : public leveldb::WritableFile
{
  public:
	memory_writer(shadow_env *env, content_ptr c) : env_(env), c_(std::move(c)) {}

	Status Append(const Slice &data) override;
	Status Close() override { return Status::OK(); }
	Status Flush() override { return Status::OK(); }
	Status Sync() override { return Status::OK(); }

  private:
	shadow_env *const env_;
	content_ptr c_;
};

class no_logger final : public leveldb::Logger
{
  public:
	void Logv(const char *format, std::va_list ap) override
	{
		(void)format;
		(void)ap;
	}
};

class shadow_env final : public leveldb::EnvWrapper
{
  public:
	explicit shadow_env(leveldb::Env *disk) : leveldb::EnvWrapper(disk) {}

	bool take(size_t bytes);
	Status NewSequentialFile(const std::string &path, leveldb::SequentialFile **out) override;
	Status NewRandomAccessFile(const std::string &path, leveldb::RandomAccessFile **out) override;
	Status NewWritableFile(const std::string &path, leveldb::WritableFile **out) override;
	Status NewAppendableFile(const std::string &path, leveldb::WritableFile **out) override;
	bool FileExists(const std::string &path) override;
	Status GetChildren(const std::string &dir, std::vector<std::string> *out) override;
	Status RemoveFile(const std::string &path) override;
	Status CreateDir(const std::string &) override { return Status::OK(); }
	Status RemoveDir(const std::string &) override { return Status::OK(); }
	Status GetFileSize(const std::string &path, uint64_t *out) override;
	Status RenameFile(const std::string &from, const std::string &to) override;
	Status NewLogger(const std::string &, leveldb::Logger **out) override;

  private:
	template <typename file> bool in_memory(const std::string &path, file **out, Status *s);
	void forget(const std::string &path);

	std::mutex lock_; /* guards the rest */
	std::map<std::string, content_ptr> files_;
	std::set<std::string> removed_;
	size_t used_ = 0;
};

bool shadow_env::take(size_t bytes)
{
	std::lock_guard<std::mutex> hold(lock_);

	if (bytes > SHADOW_BYTES_MAX - used_)
		return false;
	used_ += bytes;
	return true;
}

/* lock_ is held. */
void shadow_env::forget(const std::string &path)
{
	auto f = files_.find(path);

	if (f == files_.end())
		return;
	used_ -= f->second->bytes.size();
	files_.erase(f);
}

/* False: it is as the disk has it. */
template <typename file> bool shadow_env::in_memory(const std::string &path, file **out, Status *s)
{
	std::lock_guard<std::mutex> hold(lock_);
	auto f = files_.find(path);

	*out = nullptr;
	if (f != files_.end())
		*out = new memory_reader(f->second);
	else if (removed_.count(path))
		*s = Status::NotFound(path, "it was removed");
	else
		return false;
	return true;
}

Status shadow_env::NewSequentialFile(const std::string &path, leveldb::SequentialFile **out)
{
	Status s;

	return in_memory(path, out, &s) ? s : target()->NewSequentialFile(path, out);
}

Status shadow_env::NewRandomAccessFile(const std::string &path, leveldb::RandomAccessFile **out)
{
	Status s;

	return in_memory(path, out, &s) ? s : target()->NewRandomAccessFile(path, out);
}

Status shadow_env::NewWritableFile(const std::string &path, leveldb::WritableFile **out)
{
	std::lock_guard<std::mutex> hold(lock_);
	content_ptr c = std::make_shared<content>();

	forget(path);
	files_[path] = c;
	removed_.erase(path);
	*out = new memory_writer(this, c);
	return Status::OK();
}

Status shadow_env::NewAppendableFile(const std::string &path, leveldb::WritableFile **out)
{
	*out = nullptr;
	return Status::NotSupported(path, "a log is not gone on with");
}

bool shadow_env::FileExists(const std::string &path)
{
	std::lock_guard<std::mutex> hold(lock_);

	return files_.count(path) || (!removed_.count(path) && target()->FileExists(path));
}

Status shadow_env::GetChildren(const std::string &dir, std::vector<std::string> *out)
{
	std::lock_guard<std::mutex> hold(lock_);
	std::vector<std::string> disk;
	std::set<std::string> names;
	Status s = target()->GetChildren(dir, &disk);

	for (const std::string &name : disk)
		if (!removed_.count(dir + "/" + name))
			names.insert(name);
	for (const auto &f : files_)
		if (f.first.compare(0, dir.size() + 1, dir + "/") == 0)
			names.insert(f.first.substr(dir.size() + 1));
	out->assign(names.begin(), names.end());
	return s;
}

Status shadow_env::RemoveFile(const std::string &path)
{
	std::lock_guard<std::mutex> hold(lock_);

	forget(path);
	removed_.insert(path);
	return Status::OK();
}

Status shadow_env::GetFileSize(const std::string &path, uint64_t *out)
{
	std::lock_guard<std::mutex> hold(lock_);
	auto f = files_.find(path);

	if (f == files_.end())
		return target()->GetFileSize(path, out);
	*out = f->second->bytes.size();
	return Status::OK();
}

/* CURRENT, which was just written. LevelDB's own log of what it does is not. */
Status shadow_env::RenameFile(const std::string &from, const std::string &to)
{
	std::lock_guard<std::mutex> hold(lock_);
	auto f = files_.find(from);
	content_ptr c;

	if (f == files_.end())
		return Status::OK();
	c = f->second;
	files_.erase(f);
	forget(to);
	files_[to] = c;
	removed_.erase(to);
	return Status::OK();
}

Status shadow_env::NewLogger(const std::string &, leveldb::Logger **out)
{
	*out = new no_logger;
	return Status::OK();
}

Status memory_writer::Append(const Slice &data)
{
	if (!env_->take(data.size()))
		return Status::IOError("no room on the disk, and none in memory");
	c_->bytes.append(data.data(), data.size());
	return Status::OK();
}

struct shadow {
	shadow_env env;
	leveldb_env_t handle;

	explicit shadow(leveldb::Env *disk) : env(disk), handle{ &env, true } {}
};

} // namespace

extern "C" struct store_shadow *store_shadow_open(void *env)
{
	return (struct store_shadow *)new (std::nothrow) shadow(((leveldb_env_t *)env)->rep);
}

extern "C" void *store_shadow_env(struct store_shadow *s)
{
	return &((shadow *)s)->handle;
}

extern "C" void store_shadow_close(struct store_shadow *s)
{
	delete (shadow *)s;
}
