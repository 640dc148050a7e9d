#!/bin/sh
for word; do
	if [ "$word" = create ]; then sleep 1; fi
done
exec %q "$@"
