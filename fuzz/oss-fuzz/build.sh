#!/bin/bash -eu
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Builds all targets with OSS-Fuzz's settings: CC, CFLAGS, LIB_FUZZING_ENGINE, WORK and OUT. Run it at the top of the project.
# On any machine: CC=clang CFLAGS="-O1 -fsanitize=address,fuzzer-no-link" LIB_FUZZING_ENGINE=-fsanitize=fuzzer WORK=/tmp/work
# OUT=/tmp/out fuzz/oss-fuzz/build.sh
build=$WORK/build-oss-fuzz
mkdir -p "$OUT/lib"
mapfile -t targets < <(sed -n "s/^  '\([a-z]*\)': .*/\1/p" fuzz/meson.build)
[[ -e $build/build.ninja ]] ||
	LDFLAGS="${LDFLAGS-} -Wl,-rpath,\$ORIGIN/lib" meson setup "$build" -Dtests=true -Dfuzz=true -Dfuzz_engine="$LIB_FUZZING_ENGINE" \
		-Db_lundef=false --buildtype=plain
ninja -C "$build" "${targets[@]/#/fuzz/libfuzzer-}"
for t in "${targets[@]}"; do
	cp "$build/fuzz/libfuzzer-$t" "$OUT/fuzz_$t"
	rm -f "$OUT/fuzz_${t}_seed_corpus.zip"
	python3 -m zipfile -c "$OUT/fuzz_${t}_seed_corpus.zip" fuzz/corpus/"$t"/*
	UVD_FUZZ_DICTIONARY=1 "$OUT/fuzz_$t" >"$OUT/fuzz_$t.dict"
	[[ -s $OUT/fuzz_$t.dict ]] || rm "$OUT/fuzz_$t.dict"
	printf '[libfuzzer]\nmax_len = 16384\nlen_control = 0\n' >"$OUT/fuzz_$t.options"
done
# The machines that run the targets lack these libraries.
for library in $(ldd "$OUT"/fuzz_* 2>/dev/null | awk '/lib(ev|ibverbs|inih|jansson|cap-ng|seccomp|nl-)/ { print $3 }' | sort -u); do
	cp "$library" "$OUT/lib/"
done
