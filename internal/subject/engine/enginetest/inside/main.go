// Command inside is what tests run in containers, which have no shell:
//
//	write FILE TEXT    writes a file
//	cat FILE           prints it
//	fs PATH            prints its file system's magic number and size in bytes
//	say TEXT TEXT      prints one to standard output, one to standard error
//	flood N            prints N bytes
//	exit N             exits with N
//	die                kills itself
//	fork               starts another of itself in the background, and both sleep
//	touch N            uses N bytes of memory and sleeps
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

func main() {
	args := os.Args[1:]
	number := func() int {
		n, err := strconv.Atoi(args[1])
		check(err)
		return n
	}
	switch args[0] {
	case "write":
		check(os.WriteFile(args[1], []byte(args[2]), 0o644))
	case "cat":
		b, err := os.ReadFile(args[1])
		check(err)
		_, err = os.Stdout.Write(b)
		check(err)
	case "fs":
		var st syscall.Statfs_t
		check(syscall.Statfs(args[1], &st))
		fmt.Printf("%#x %d", st.Type, int64(st.Blocks)*st.Bsize)
	case "say":
		fmt.Fprint(os.Stdout, args[1])
		fmt.Fprint(os.Stderr, args[2])
	case "flood":
		chunk := make([]byte, 4096)
		for i := range chunk {
			chunk[i] = 'x'
		}
		for n := number(); n > 0; n -= len(chunk) {
			if _, err := os.Stdout.Write(chunk[:min(n, len(chunk))]); err != nil {
				return
			}
		}
	case "exit":
		os.Exit(number())
	case "die":
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	case "fork":
		child := exec.Command("/proc/self/exe", "sleep")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // which it holds open
		check(child.Start())
		time.Sleep(time.Hour)
	case "touch":
		b := make([]byte, number())
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		fmt.Println("touched")
		time.Sleep(time.Hour)
		fmt.Println(b[0])
	case "sleep":
		time.Sleep(time.Hour)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
