package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The counts are those of real go test runs over small modules made here.
func TestClosingLine(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs several modules: not with -short")
	}
	const header = "package p\n\nimport \"testing\"\n\n"
	tests := []struct {
		name     string
		files    map[string]string
		args     []string
		want     string // the last line
		wantCode int
		shows    []string
	}{
		{
			name: "passing tests and skips with their reasons",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { t.Log(\"tried\"); t.Skip(\"no kernel\") }\n",
			},
			want:  "1 passed, 0 failed, 1 skipped",
			shows: []string{"p TestB: no kernel"},
		},
		{
			name: "a test that holds subtests is not counted beside them",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(t *testing.T) {})\n\tt.Run(\"y\", func(t *testing.T) { t.Error(\"off by one\") })\n}\n",
			},
			want:     "1 passed, 1 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"off by one", "failed:\n  p TestA/y\n"},
		},
		{
			name: "a test that fails after its subtests passed is counted",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(t *testing.T) {})\n\tt.Error(\"afterwards\")\n}\n",
			},
			want:     "1 passed, 1 failed, 0 skipped",
			wantCode: 1,
		},
		{
			name: "a test that never ends has failed",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) {}\n\nfunc TestB(t *testing.T) { t.Run(\"x\", func(t *testing.T) { select {} }) }\n",
			},
			args:     []string{"-timeout=1s"},
			want:     "1 passed, 1 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"p TestB/x"},
		},
		{
			name: "a panic fails its test",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) { panic(\"out of cheese\") }\n",
			},
			want:     "0 passed, 1 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"out of cheese"},
		},
		{
			name: "a package that does not build is one failure",
			files: map[string]string{
				"p_test.go":   header + "func TestA(t *testing.T) {}\n",
				"q/q_test.go": "package q\n\nvar x int = \"one\"\n",
			},
			want:     "1 passed, 1 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"(does not build)", "cannot use \"one\"", "go vet is not clean"},
		},
		{
			name: "a package that gives up in TestMain is one failure",
			files: map[string]string{
				"p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(*testing.M) { println(\"no disk\"); os.Exit(3) }\n\nfunc TestA(t *testing.T) {}\n",
			},
			want:     "0 passed, 1 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"no disk", "p (outside its tests)"},
		},
		{
			name: "bad formatting fails the run, and no test",
			files: map[string]string{
				"p_test.go": header + "func TestA(t *testing.T) { }\n",
			},
			want:     "1 passed, 0 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"gofmt is not clean"},
		},
		{
			name:     "a flag that go test refuses is one failure",
			files:    map[string]string{"p_test.go": header + "func TestA(t *testing.T) {}\n"},
			args:     []string{"-timeout=soon"},
			want:     "0 passed, 1 failed, 0 skipped",
			wantCode: 1,
		},
		{
			name:     "no test is no success",
			files:    map[string]string{"p.go": "package p\n"},
			want:     "0 passed, 0 failed, 0 skipped",
			wantCode: 1,
			shows:    []string{"no test ran"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.files["go.mod"] = "module p\n\ngo 1.26.0\n"
			for name, text := range test.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			var out, warnings bytes.Buffer
			code := run(t.Context(), "go", append(test.args, "./..."), &out, &warnings)
			if code != test.wantCode {
				t.Errorf("exit code %d, want %d", code, test.wantCode)
			}
			got := strings.TrimSuffix(out.String(), "\n")
			if last := got[strings.LastIndexByte(got, '\n')+1:]; last != test.want {
				t.Errorf("the last line is %q, want %q", last, test.want)
			}
			for _, want := range test.shows {
				if !strings.Contains(got, want) {
					t.Errorf("it does not show %q", want)
				}
			}
			if t.Failed() {
				t.Logf("%s\n%s", got, &warnings)
			}
		})
	}
}
