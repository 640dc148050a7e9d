package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/util/exec"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/term"
)

const maxRecord = 16 << 30 // bytes

// content is the first line of a transfer. The bytes of the file follow from the requested
// offset.
type content struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Send writes the size and the checksum of a file, and its content from an offset.
func Send(w io.Writer, path string, from int64) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no record was made")
	}
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err == nil {
		err = json.NewEncoder(w).Encode(content{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	if err == nil {
		_, err = io.Copy(w, io.NewSectionReader(file, from, max(size-from, 0)))
	}
	return err
}

// fetch copies the record of a node to this machine and resumes after a broken connection.
// The file gets its name after its size and checksum are verified.
func (f *Fleet) fetch(ctx context.Context, pod, node string) (path string, err error) {
	path = filepath.Join(f.Dir, FileName(node))
	part, err := os.OpenFile(path+".part", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("keep its record: %w", err)
	}
	defer func() {
		if err = errors.Join(err, part.Close()); err != nil {
			path = ""
			_ = os.Remove(part.Name())
		}
	}()
	r := receiver{to: part}
	for broken := 0; ; {
		before := r.got
		r.head, r.begun = nil, false
		said := engine.Kept{Most: subject.MaxOutput}
		err := f.receive(ctx, pod, f.sends(node, r.got), &r, &said)
		var exit exec.CodeExitError
		switch {
		case r.wrong != nil:
			return "", fmt.Errorf("fetch its record: %w", r.wrong)
		case r.whole():
			if err := r.check(); err != nil {
				return "", err
			}
			return path, os.Rename(part.Name(), path)
		case errors.Is(err, errMute):
			return "", fmt.Errorf("fetch its record: no data received for %v, after %d bytes", f.silent, r.got)
		case errors.As(err, &exit) && said.String() != "":
			return "", fmt.Errorf("fetch its record: %s", term.Clean(strings.TrimSpace(said.String())))
		case r.got > before:
			broken = 0
		}
		f.progress(node, fmt.Sprintf("fetching its record, %d bytes so far", r.got))
		if err := machine.Sleep(ctx, f.look); err != nil {
			return "", err
		}
		s, seeErr := f.see(ctx, node, jobName(f.RunID, node)) // waits for an unavailable API server
		if broken++; seeErr != nil || s.pod == nil || broken > 5 {
			return "", fmt.Errorf("fetch its record: it broke off after %d bytes: %w", r.got, errors.Join(err, seeErr))
		}
	}
}

// errMute means that a connected node sent nothing for too long.
var errMute = errors.New("no data received")

// receive requests a record, and fails if no data arrives for some time.
func (f *Fleet) receive(ctx context.Context, pod string, command []string, r *receiver, said io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	mute := time.AfterFunc(f.silent, func() { cancel(errMute) })
	defer mute.Stop()
	r.heard = func() { mute.Reset(f.silent) }
	err := f.exec(ctx, pod, keeperName, command, r, said)
	return cmp.Or(context.Cause(ctx), err)
}

// receiver stores a transfer over one or several connections.
type receiver struct {
	to    *os.File
	heard func() // called for all data
	head  []byte // head of this connection, so far
	begun bool   // the head is complete
	is    *content
	got   int64
	wrong error // the transfer is invalid
}

func (r *receiver) Write(p []byte) (int, error) {
	n := len(p)
	r.heard()
	if !r.begun {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if r.head = append(r.head, line...); !whole && len(r.head) < 1024 {
			return n, nil
		}
		var is content
		switch err := json.Unmarshal(r.head, &is); {
		case err != nil || is.Size < 0 || is.Size > maxRecord:
			return 0, r.refuse("the node's answer does not start with a size and a checksum")
		case r.is != nil && *r.is != is:
			return 0, r.refuse("it changed during the transfer")
		}
		r.is, r.begun, p = &is, true, rest
	}
	if r.got+int64(len(p)) > r.is.Size {
		return 0, r.refuse("the node sends more than its announced size")
	}
	written, err := r.to.Write(p)
	r.got += int64(written)
	if err != nil {
		return written, r.refuse(err.Error())
	}
	return n, nil
}

func (r *receiver) refuse(why string) error {
	r.wrong = errors.New(why)
	return r.wrong
}

func (r *receiver) whole() bool { return r.is != nil && r.got == r.is.Size }

// check compares the checksum of the received file with the node's.
func (r *receiver) check() error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(r.to, 0, r.got)); err != nil {
		return err
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != r.is.SHA256 {
		return fmt.Errorf("fetch its record: checksum mismatch: %s here, %s on the node", is, term.Clean(r.is.SHA256))
	}
	return nil
}

// FileName returns a safe file name for a node's record, for any name of the node.
func FileName(node string) string { return safe(node) + ".jsonl" }

func safe(name string) string {
	clean := strings.TrimLeft(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' {
			return c
		}
		return '_'
	}, name), ".-")
	if clean == name && len(name) <= 200 {
		return name
	}
	return cmp.Or(clean[:min(len(clean), 200)], "node") + "-" + short(name)
}

// sends returns the command that sends a node's record from an offset.
func (f *Fleet) sends(node string, from int64) []string {
	return []string{Program, "fleet", "send", recordPath(node), "--from", strconv.FormatInt(from, 10)}
}
