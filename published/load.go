package published

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// maxSize is the largest size of a publication's file, in bytes.
const maxSize = 1 << 20

// fileName is the file name of a publication in its own directory.
const fileName = "report.json"

// Names returns the names of the publications embedded in tare.
func Names() []string {
	files, err := fs.Glob(shipped, "*/"+fileName)
	if err != nil {
		return nil // cannot happen: the pattern is valid
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = path.Dir(file)
	}
	return names
}

// Load reads a publication: an embedded one by NAME or published/NAME, or else the file at a
// path or in a directory. It returns an error for a record.
func Load(name string) (*Report, error) {
	short := strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), "published/")
	if text, err := shipped.ReadFile(path.Join(short, fileName)); err == nil {
		return Parse(name, text)
	}
	file := name
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		file = filepath.Join(name, fileName)
	}
	text, err := read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("published figures %q: no such file (included in tare: published/%s)", name, strings.Join(Names(), ", published/"))
	}
	if err != nil {
		return nil, fmt.Errorf("published figures: %w", err)
	}
	return Parse(file, text)
}

func read(file string) ([]byte, error) {
	info, err := os.Stat(file) // opening a pipe would block until it has a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing to flush
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// Parse parses a publication; name is used in errors.
func Parse(name string, text []byte) (*Report, error) {
	if isRecord(text) {
		return nil, fmt.Errorf("%s is a record: use tare compare A B to compare records", name)
	}
	if len(text) > maxSize {
		return nil, fmt.Errorf("%s is larger than 1 MiB: not a file of published figures", name)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	r := new(Report)
	if err := decoder.Decode(r); err != nil {
		var v struct{ Version int }
		if json.Unmarshal(text, &v) == nil && v.Version > Version {
			return nil, fmt.Errorf("%s has unsupported format version %d (supported: %d): use a later tare", name, v.Version, Version)
		}
		return nil, fmt.Errorf("%s does not hold published figures: %w; published/isulad-2020/report.json is an example", name, err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("%s contains more than one publication: use one file for each", name)
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.ofALifecycle()
	return r, nil
}

// ofALifecycle treats a publication without an Experiment as a lifecycle measurement: it sets
// the tare figures that correspond to its tables and rows.
func (r *Report) ofALifecycle() {
	if r.Experiment != "" {
		return
	}
	r.Experiment = "lifecycle"
	for i := range r.Tables {
		t := &r.Tables[i]
		t.Ours = Ours{Quantity: "trimmed-mean", Unit: r.Unit, Labels: map[string]string{"lanes": strconv.Itoa(t.Lanes)}}
		for j := range t.Rows {
			t.Rows[j].Labels = map[string]string{"op": t.Rows[j].Op}
		}
	}
}

// isRecord reports whether text is a record, by its first line or by the magic number of zstd.
func isRecord(text []byte) bool {
	if bytes.HasPrefix(text, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return true
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var first struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &first) == nil && first.Type == "header"
}
