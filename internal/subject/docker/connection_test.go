package docker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAReplyWithoutEndIsCutOffAsAnError(t *testing.T) {
	i, err := image.Probe()
	must.OK(t, err)
	long := strings.Repeat(" ", maxReply) // as white space JSON goes on, and ends well
	e, f := serve(t, map[string]string{"GET /images/" + i.Ref + "/json": fmt.Sprintf(`{"Id":%q,"Comment":%q}`, i.ID, long)})
	tg := &driver{Target: weigh(t, e, "", viaAPI), image: i, env: subject.Env{RunID: "r"}}
	if _, err := tg.hasImage(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than 4 MiB") {
		t.Errorf("the image: %v", err)
	}
	f.list = func() string { return "[" + long + "]" }
	if _, err := tg.List(t.Context()); err == nil || !strings.Contains(err.Error(), "longer than 4 MiB") {
		t.Errorf("the list: %v", err)
	}
	f.list = func() string { return "[" + long[2:] + "]" }
	if found, err := tg.List(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("a reply of just the length: %v, %v", found, err)
	}
}

func TestAQuestionAboutTheImageHasItsOwnTime(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]", "GET /images/json": "hang"})
	tg := weigh(t, e, "", viaAPI)
	began := time.Now()
	_, err := tg.Clean(context.Background(), "r", true)
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "list the workload's images") || took > patience+time.Minute {
		t.Errorf("after %v: %v", took, err)
	}
}
