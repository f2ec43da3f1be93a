#!/bin/sh
# Move logs of a directory into its directory old.
cd $1
mkdir -p old
count=0
for file in `ls *.log`; do
    mv $file old/
    count=$((count + 1))
done
echo $count
