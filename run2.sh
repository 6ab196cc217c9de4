export CCACHE_BASEDIR=/work CCACHE_NOHASHDIR=1; nice timeout 300 ninja -C build tests/doorbell/test-doorbell-reader 2>&1 | grep -E "error|warning|FAILED" -A6 | head -60
cd build; time CK_VERBOSITY=${V:-normal} timeout 120 nice tests/doorbell/test-doorbell-reader 2>&1 | tail -${N:-30}; date
