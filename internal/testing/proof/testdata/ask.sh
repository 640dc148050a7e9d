for i in {1..128}; do
	exec 3<>/dev/tcp/127.0.0.1/8080 || exit 1
	printf 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' >&3
	read -r line <&3
	[[ $line == *200* ]] || exit 2
	exec 3>&-
done
