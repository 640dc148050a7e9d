package plan

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryReadyPlanLoads(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no ready plans: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			p, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSuffix(filepath.Base(file), ".yaml"); p.Name != want {
				t.Errorf("its name is %q and its file's is %q", p.Name, want)
			}
			if p.Description == "" {
				t.Error("it does not say what it is for")
			}
		})
	}
}
