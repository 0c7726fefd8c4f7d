"""A column store beside the server: stores.py clickhouse|duckdb INPUT DIR answers commands, a line of JSON each.

INPUT has what dense.go wrote; DIR is emptied. The commands:

{"do": "store", "start": S}              one insert for each scrape of the fleet; CPU seconds
{"do": "finish"}                         the table in order, tables of functions, sums; CPU seconds
{"do": "bytes"}                          by table
{"do": "answer", "query": NAME, ...}     the rows of one query
{"do": "time", "query": NAME, "cpu": S}  CPU seconds of it, over as many as take S

CPU time is that of this process: the threads of the store are in it. One query runs on one thread.
"""

import json
import os
import resource
import shutil
import sys

import numpy as np

PODS = 10
STEP_S = 10
HOUR_S = 3600


def cpu():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


class Input:
    """Columns of all samples, in the order of scrapes; stacks, by id."""

    def __init__(self, path):
        row = [("series", "<u2"), ("scrape", "<u2"), ("service", "<u2"), ("stack", "<u2"), ("value", "<u4")]
        stack = [("service", "<u2"), ("stack", "<u2"), ("function", "<u4")]
        self.path = path
        self.rows = np.fromfile(os.path.join(path, "samples.bin"), dtype=row)
        self.leaves, self.frames = (self.columns(np.fromfile(os.path.join(path, f), dtype=stack)) for f in
                                    ("leaves.bin", "frames.bin"))
        with open(os.path.join(path, "functions.txt"), encoding="utf-8") as file:
            self.functions = file.read().split("\n")[:-1]

    @staticmethod
    def columns(stacks):
        return {"service": stacks["service"].astype("u1"), "stack": stacks["stack"].copy(),
                "function": stacks["function"].astype("u2")}

    def batches(self, start):
        """Of each scrape all profiles, as a dictionary of columns."""
        at = np.searchsorted(self.rows["scrape"], np.arange(int(self.rows["scrape"][-1]) + 2))
        for begin, end in zip(at, at[1:]):
            rows = self.rows[begin:end]
            if len(rows):
                yield {
                    "service": rows["service"].astype("u1"),
                    "series": rows["series"].copy(),
                    "ts": (start + STEP_S * (rows["scrape"].astype("u4") + 1)).astype("u4"),
                    "stack": rows["stack"].copy(),
                    "value": rows["value"].astype("u2"),
                }


# What both can say in the same words.
MERGE = """SELECT stack, sum(value) AS total FROM samples
    WHERE service = {service} AND ts > {start} AND ts <= {end} GROUP BY stack"""
BY_POD = """SELECT series, ts, sum(value) AS total FROM samples
    WHERE service = {service} AND ts > {start} AND ts <= {end} GROUP BY series, ts"""
BY_POD_TOTALS = """SELECT series, ts, total FROM totals
    WHERE service = {service} AND ts > {start} AND ts <= {end}"""
HOURS = """SELECT name, total FROM (SELECT function, sum({column}) AS total FROM hours
    WHERE hour >= {start} AND hour < {end} GROUP BY function ORDER BY total DESC, function LIMIT 10) AS t
    JOIN functions ON functions.id = t.function"""
NAMED = """SELECT name, total FROM ({inner} ORDER BY total DESC, function LIMIT 10) AS t
    JOIN functions ON functions.id = t.function"""
PODS_OF = "SELECT DISTINCT pod FROM series WHERE service = '{job}'"

COMMON = {
    "merge": MERGE,
    "by pod": BY_POD,
    "by pod, totals": BY_POD_TOTALS,
    "flat, hours": HOURS.replace("{column}", "flat"),
    "cum, hours": HOURS.replace("{column}", "cum"),
    "values": PODS_OF,
}


class ClickHouse:
    CODEC = os.environ.get("BENCH_COLUMNS_CODEC", "ZSTD(3)")
    CODE = f"CODEC(Delta, T64('bit'), {CODEC})"
    ROW = "service UInt8, series UInt16, ts UInt32, stack UInt16, value UInt16"
    SAMPLES = f"""CREATE TABLE samples (service UInt8 CODEC({CODEC}),
        series UInt16 CODEC(Delta, {CODEC}), ts UInt32 CODEC(DoubleDelta, {CODEC}),
        stack UInt16 {CODE}, value UInt16 CODEC(T64('bit'), {CODEC}))
        ENGINE = MergeTree ORDER BY (service, series, ts, stack)
        SETTINGS min_bytes_for_wide_part = 0, fsync_after_insert = 1,
        min_compress_block_size = 1048576, max_compress_block_size = 4194304"""
    TABLES = f"""
        CREATE TABLE series (series UInt16, service LowCardinality(String), pod LowCardinality(String))
            ENGINE = MergeTree ORDER BY service;
        CREATE TABLE functions (id UInt16 CODEC(Delta, ZSTD(1)), name String CODEC(ZSTD(9))) ENGINE = MergeTree ORDER BY id;
        CREATE TABLE leaves (service UInt8, stack UInt16 {CODE}, function UInt16 CODEC(T64('bit'), {CODEC}))
            ENGINE = MergeTree ORDER BY (service, stack);
        CREATE TABLE frames (service UInt8, stack UInt16 {CODE}, function UInt16 CODEC(Delta, {CODEC}))
            ENGINE = MergeTree ORDER BY (function, service, stack) SETTINGS index_granularity = 1024;
        CREATE TABLE totals (service UInt8, series UInt16 CODEC(Delta, ZSTD(1)), ts UInt32 CODEC(DoubleDelta, ZSTD(1)),
            total UInt32 {CODE}) ENGINE = MergeTree ORDER BY (service, series, ts);
        CREATE TABLE hours (hour UInt32 CODEC(Delta, ZSTD(1)), service UInt8, function UInt16 {CODE},
            flat UInt64 CODEC(T64('bit'), {CODEC}), cum UInt64 CODEC(T64('bit'), {CODEC}))
            ENGINE = MergeTree ORDER BY (hour, service, function)"""
    # Looked up by array: no join is as quick.
    LOOKUPS = """
        CREATE DICTIONARY leaf (stack UInt64, function UInt16) PRIMARY KEY stack
            SOURCE(CLICKHOUSE(QUERY 'SELECT service * 65536 + stack AS stack, function FROM bench.leaves')) LIFETIME(0)
            LAYOUT(FLAT(INITIAL_ARRAY_SIZE 65536 MAX_ARRAY_SIZE 16777216));
        CREATE DICTIONARY path (stack UInt64, functions Array(UInt16)) PRIMARY KEY stack
            SOURCE(CLICKHOUSE(QUERY 'SELECT service * 65536 + stack AS stack, groupArray(function) AS functions
                FROM bench.frames GROUP BY stack')) LIFETIME(0)
            LAYOUT(FLAT(INITIAL_ARRAY_SIZE 65536 MAX_ARRAY_SIZE 16777216));
        SYSTEM RELOAD DICTIONARY bench.leaf;
        SYSTEM RELOAD DICTIONARY bench.path"""
    KEY = "service * 65536 + stack"
    FLAT = f"""SELECT dictGet('leaf', 'function', {KEY}) AS function, sum(value) AS total FROM samples
        WHERE ts > {{start}} AND ts <= {{end}} GROUP BY function"""
    CUM = f"""SELECT arrayJoin(dictGet('path', 'functions', {KEY})) AS function, sum(sums) AS total FROM
        (SELECT service, stack, sum(value) AS sums FROM samples WHERE ts > {{start}} AND ts <= {{end}} GROUP BY service, stack)
        GROUP BY function"""
    FILTERED = f"""SELECT sum(value) AS total FROM samples WHERE ts > {{start}} AND ts <= {{end}} AND {KEY} IN
        (SELECT {KEY} FROM frames WHERE function = (SELECT id FROM functions WHERE name = '{{function}}'))"""
    FILL_HOURS = f"""INSERT INTO hours
        SELECT hour, service, function, sum(if(function = leaf, total, 0)), sum(total) FROM
        (SELECT intDiv(ts - 1, {HOUR_S}) * {HOUR_S} AS hour, service, dictGet('leaf', 'function', {KEY}) AS leaf,
            dictGet('path', 'functions', {KEY}) AS functions, sum(value) AS total
            FROM samples GROUP BY hour, service, stack)
        ARRAY JOIN functions AS function GROUP BY hour, service, function"""
    SETTINGS = " SETTINGS max_threads = 1, max_insert_threads = 1"
    QUERIES = dict(COMMON, flat=NAMED.replace("{inner}", FLAT), cum=NAMED.replace("{inner}", CUM), filtered=FILTERED)

    def __init__(self, given, path):
        from chdb import session

        self.input, self.path = given, path
        self.session = session.Session(os.path.join(path, "clickhouse"))
        self.run("CREATE DATABASE bench ENGINE = Atomic; USE bench")
        self.run(self.SAMPLES)
        self.run("SYSTEM STOP MERGES samples")

    def close(self):
        self.session.close()

    def run(self, text, form="CSV"):
        return self.session.query(text, form)

    def insert(self, table, names, batch):
        """CPU seconds. Rows come as the store reads them soonest: its own binary form, in a file in memory."""
        file = f"/dev/shm/columns-{os.getpid()}.bin"
        np.rec.fromarrays(list(batch.values()), names=list(batch)).tofile(file)
        try:
            began = cpu()
            self.run(f"INSERT INTO {table} ({', '.join(batch)}) SELECT * FROM file('{file}', 'RowBinary', '{names}')"
                     + self.SETTINGS + ", min_insert_block_size_rows = 10000000, max_insert_block_size = 10000000")
            return cpu() - began
        finally:
            os.unlink(file)

    def store(self, start):
        return sum(self.insert("samples", self.ROW, b) for b in self.input.batches(start))

    def finish(self):
        """One part, as merges make it; then tables that look functions up, and sums by hour and by profile."""
        began = cpu()
        self.run("SYSTEM START MERGES samples")
        self.run("OPTIMIZE TABLE samples FINAL")
        ordered = cpu() - began
        self.run(self.TABLES)
        self.run(f"INSERT INTO series SELECT number, 'svc' || leftPad(toString(intDiv(number, {PODS})), 3, '0'),"
                 f" 'pod' || toString(number % {PODS}) FROM numbers({int(self.input.rows['series'].max()) + 1})")
        self.run(f"INSERT INTO functions SELECT toUInt16(rowNumberInAllBlocks()), line"
                 f" FROM file('{os.path.abspath(self.input.path)}/functions.txt', 'LineAsString', 'line String')")
        for table in ("leaves", "frames"):
            self.insert(table, "service UInt8, stack UInt16, function UInt16", getattr(self.input, table))
        self.run(self.LOOKUPS)
        began = cpu()
        self.run("INSERT INTO totals SELECT service, series, ts, sum(value) FROM samples GROUP BY service, series, ts"
                 + self.SETTINGS)
        self.run(self.FILL_HOURS + self.SETTINGS)
        return {"ordered": ordered, "sums": cpu() - began}

    def bytes(self):
        out = str(self.run("SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'bench'"
                           " GROUP BY table", "TSV"))
        return {table: int(size) for table, size in (line.split("\t") for line in out.strip().split("\n"))}

    def rows(self, text):
        out = self.run(text + self.SETTINGS, "JSONCompact").bytes()
        return [[int(v) if str(v).isdigit() else v for v in row] for row in json.loads(out)["data"]]

    def once(self, text):
        return self.run(text + self.SETTINGS, "RowBinary").bytes()


class DuckDB:
    FLAT = """SELECT function, sum(sums) AS total FROM
        (SELECT service, stack, sum(value) AS sums FROM samples WHERE ts > {start} AND ts <= {end} GROUP BY service, stack)
        JOIN leaves USING (service, stack) GROUP BY function"""
    CUM = FLAT.replace("leaves", "frames")
    FILTERED = """SELECT sum(sums) AS total FROM
        (SELECT service, stack, sum(value) AS sums FROM samples WHERE ts > {start} AND ts <= {end} GROUP BY service, stack)
        JOIN frames USING (service, stack) WHERE function = (SELECT id FROM functions WHERE name = '{function}')"""
    FILL = f"""
        CREATE TABLE totals AS SELECT service, series, ts, sum(value)::UINTEGER AS total FROM samples
            GROUP BY ALL ORDER BY ALL;
        CREATE TABLE hours AS SELECT hour, service, f.function,
            sum(CASE WHEN f.function = l.function THEN total ELSE 0 END)::UINTEGER AS flat, sum(total)::UINTEGER AS cum FROM
            (SELECT (ts - 1) // {HOUR_S} * {HOUR_S} AS hour, service, stack, sum(value) AS total FROM samples GROUP BY ALL)
            JOIN leaves AS l USING (service, stack) JOIN frames AS f USING (service, stack) GROUP BY ALL ORDER BY ALL"""
    QUERIES = dict(COMMON, flat=NAMED.replace("{inner}", FLAT), cum=NAMED.replace("{inner}", CUM), filtered=FILTERED)

    def __init__(self, given, path):
        import duckdb

        self.input, self.path = given, path
        self.arrived, self.ordered, self.parquet = (os.path.join(path, f) for f in
                                                    ("arrived.duckdb", "ordered.duckdb", "samples.parquet"))
        self.db = duckdb.connect()
        self.db.execute("SET threads = 1; SET perfect_ht_threshold = 26")
        self.attach("arrived", self.arrived)
        self.db.execute("CREATE TABLE arrivals (service UTINYINT, series USMALLINT, ts UINTEGER, stack USMALLINT,"
                        " value USMALLINT)")

    def close(self):
        self.db.close()

    def attach(self, name, file):
        self.db.execute(f"ATTACH '{file}' AS {name} (STORAGE_VERSION 'latest'); USE {name}")

    def store(self, start):
        took = 0
        for columns in self.input.batches(start):
            began = cpu()
            self.db.execute("INSERT INTO arrivals SELECT * FROM columns")
            took += cpu() - began
        return took

    def finish(self):
        """A file of its own with the table in order, then tables that look functions up, and sums by hour and by profile."""
        began = cpu()
        self.attach("ordered", self.ordered)
        self.db.execute("CREATE TABLE samples AS SELECT * FROM arrived.arrivals ORDER BY service, series, stack, ts")
        self.db.execute("CHECKPOINT ordered")
        ordered = cpu() - began
        self.db.execute("DETACH arrived")
        os.unlink(self.arrived)
        self.samples_bytes = os.path.getsize(self.ordered)
        self.db.execute(f"COPY (FROM samples ORDER BY service, stack, series, ts) TO '{self.parquet}'"
                        " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE 1000000)")
        ids = np.arange(int(self.input.rows["series"].max()) + 1)
        series = {"series": ids.astype("u2"), "service": np.array([f"svc{i // PODS:03}" for i in ids], dtype=object),
                  "pod": np.array([f"pod{i % PODS}" for i in ids], dtype=object)}
        functions = {"id": np.arange(len(self.input.functions)).astype("u2"),
                     "name": np.array(self.input.functions, dtype=object)}
        leaves, frames = self.input.leaves, self.input.frames
        for table, order in (("series", "service"), ("functions", "id"), ("leaves", "service, stack"),
                             ("frames", "function, service, stack")):
            self.db.execute(f"CREATE TABLE {table} AS SELECT * FROM {table} ORDER BY {order}")
        assert len(series) and len(functions) and len(leaves) and len(frames)  # DuckDB finds them by name
        began = cpu()
        self.db.execute(self.FILL)
        self.db.execute("CHECKPOINT ordered")
        return {"ordered": ordered, "sums": cpu() - began}

    def bytes(self):
        rest = os.path.getsize(self.ordered) - self.samples_bytes
        return {"samples": self.samples_bytes, "the other tables": rest, "parquet": os.path.getsize(self.parquet)}

    def rows(self, text):
        return [[v if isinstance(v, str) else int(v) for v in row] for row in self.db.execute(text).fetchall()]

    def once(self, text):
        return self.db.execute(text).fetchnumpy() if "functions" not in text and "pod" not in text else self.rows(text)


def main():
    kind = {"clickhouse": ClickHouse, "duckdb": DuckDB}[sys.argv[1]]
    given, path, store = Input(sys.argv[2]), sys.argv[3], None
    for line in sys.stdin:
        command = json.loads(line)
        do = command.pop("do")
        if do == "store":
            if store:
                store.close()
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
            store = kind(given, path)
            answer = store.store(command["start"])
        elif do == "finish":
            answer = store.finish()
        elif do == "bytes":
            answer = store.bytes()
        else:
            text = kind.QUERIES[command["query"]].format(**command)
            if do == "answer":
                answer = store.rows(text)
            else:
                began, n = cpu(), 0
                while n == 0 or cpu() - began < command["cpu"]:
                    store.once(text)
                    n += 1
                answer = (cpu() - began) / n
        print(json.dumps(answer), flush=True)


main()
