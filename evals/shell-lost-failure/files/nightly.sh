#!/bin/bash
./dump | gzip > backup.gz
echo "backup done"
