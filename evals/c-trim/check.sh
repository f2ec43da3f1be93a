cc -Wall -I. -o /tmp/test "$CHECK/test.c" trim.c || exit 1
timeout 10 /tmp/test > /tmp/said || { echo "it crashed"; exit 1; }
printf '[]\n[]\n[]\n[]\n[a]\n[a]\n[a]\n[a b]\n[a\tb]\n[\n]\n' | diff - /tmp/said
