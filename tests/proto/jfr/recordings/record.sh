#!/bin/bash
# Makes the recordings and their expected files anew: record.sh AGENT.jar OLD.jar JDK25, jars of io.pyroscope:agent 2.9.2
# and 0.12.0, and the folder of a JDK 25. Needs a whole JDK of another version (java, javac, jfr), python3, unzip; writes
# beside itself. Runs on Linux with perf events.
set -eu
agent=$(realpath "$1") old=$(realpath "$2") jdk25=$(realpath "$3")
cd "$(dirname "$(realpath "$0")")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unzip -qo "$agent" libasyncProfiler-linux-x64.so -d "$work"
javac -g -cp "$agent" -d "$work" Work.java Labelled.java
profiler="-agentpath:$work/libasyncProfiler-linux-x64.so=start,jfr"

java "-XX:StartFlightRecording=settings=$PWD/jdk.jfc,filename=$work/jdk.jfr" -XX:FlightRecorderOptions=stackdepth=24 \
	-cp "$work" Work 1500 40
"$jdk25/bin/java" "-XX:StartFlightRecording=settings=$PWD/jdk25.jfc,filename=$work/jdk25.jfr" \
	-XX:FlightRecorderOptions=stackdepth=24 -cp "$work" Work 1500 40
java "$profiler,event=cpu,interval=10ms,wall=50ms,alloc=8m,lock=1ms,live,file=$work/async.jfr" -cp "$work" Work 700 20
java "$profiler,event=wall,interval=40ms,nativemem=400k,nofree,file=$work/wall.jfr" -cp "$work" Work 500 20
unzip -qo "$old" libasyncProfiler-linux-x64.so -d "$work"
java "$profiler,event=wall,interval=40ms,file=$work/old.jfr" -cp "$work" Work 500 20

python3 sink.py 17272 "$work" 3 &
sink=$!
trap 'kill $sink; rm -rf "$work"' EXIT
PYROSCOPE_SERVER_ADDRESS=http://127.0.0.1:17272 PYROSCOPE_APPLICATION_NAME=labelled PYROSCOPE_FORMAT=jfr \
	PYROSCOPE_PROFILER_EVENT=itimer PYROSCOPE_PROFILER_ALLOC=8m PYROSCOPE_UPLOAD_INTERVAL=2s \
	java "-javaagent:$agent" -cp "$work" Labelled 20000

for name in jdk async wall old agent; do
	python3 expected.py "$work/$name.jfr" | gzip -9n >"$name.expected.gz"
	gzip -9n <"$work/$name.jfr" >"$name.jfr.gz"
done
PATH="$jdk25/bin:$PATH" python3 expected.py "$work/jdk25.jfr" 20000000 | gzip -9n >jdk25.expected.gz
gzip -9n <"$work/jdk25.jfr" >jdk25.jfr.gz
gzip -9n <"$work/agent.labels" >agent.labels.gz
