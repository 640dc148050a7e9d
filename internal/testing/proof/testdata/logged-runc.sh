#!/bin/bash
LC_ALL=C
began=$EPOCHREALTIME
%[1]q "$@"
code=$?
ended=$EPOCHREALTIME
IFS=$'\t'
printf '%%s\n' "$$	$began	$ended	$*" >>%[2]q
exit $code
