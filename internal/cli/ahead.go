package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/term"
)

// Limits above which a plan needs confirmation.
const (
	muchWritten = 20e9
	longTime    = time.Hour
	longEnough  = 10 * time.Second // announce a measurement that takes longer
)

// foreseen are options that estimate the cost of their measurement.
type foreseen interface{ Ahead(targets int) terms.Ahead }

// said formats the cost of a measurement. With a budget, bytes that would be written after
// it has passed are not counted.
func said(a terms.Ahead) string {
	var parts []string
	switch {
	case a.Bytes > 0 && a.More && a.Budget > 0:
		parts = append(parts, "writes at least "+page.Size(a.Bytes)+" within its budget")
	case a.Bytes > 0 && a.Budget > 0:
		parts = append(parts, "writes at most "+page.Size(a.Bytes))
	case a.Bytes > 0 && a.More:
		parts = append(parts, "writes at least "+page.Size(a.Bytes))
	case a.Bytes > 0:
		parts = append(parts, "writes "+page.Size(a.Bytes))
	case a.More:
		parts = append(parts, "writes an unknown amount")
	}
	if a.Time > 0 {
		parts = append(parts, "takes at least "+seconds(a.Time))
	} else {
		parts = append(parts, "takes an unknown time")
	}
	return strings.Join(parts, ", ")
}

// ahead prints the cost of each measure of a plan. It asks for confirmation if the total
// exceeds the limits.
func (s *app) ahead(ctx context.Context, measures []plan.Measure, quiet, yes bool) error {
	var sum terms.Ahead
	for i, m := range measures {
		o, ok := m.Options.(foreseen)
		if !ok {
			continue
		}
		a := o.Ahead(1)
		if a.Bytes > 0 || a.Time > 0 { // otherwise the number of targets does not matter
			a = o.Ahead(targetsOf(ctx, m.Options))
		}
		if a.Budget > 0 {
			a.Time = min(a.Time, a.Budget)
		}
		sum.Budget = max(sum.Budget, a.Budget)
		sum.Bytes, sum.More = sum.Bytes+a.Bytes, sum.More || a.More
		sum.Takes(1, a.Time)
		if quiet {
			continue
		}
		text := said(a)
		if a.Budget > 0 {
			text += ", starts nothing new after its budget of " + option.FormatDuration(a.Budget)
		}
		fmt.Fprintf(s.Err, "tare: measure %d of %d, %s: %s\n", i+1, len(measures), m.Name, text)
	}
	if !quiet && len(measures) > 1 {
		fmt.Fprintf(s.Err, "tare: total: %s\n", said(sum))
	}
	if yes || sum.Bytes <= muchWritten && sum.Time <= longTime {
		return nil
	}
	return s.ask(ctx, fmt.Sprintf("the plan %s; more than 20 GB or one hour needs confirmation", said(sum)))
}

// targetsOf returns the number of available targets of a measure.
func targetsOf(ctx context.Context, o option.Options) int {
	w, ok := whom(o)
	if !ok {
		return 1
	}
	found, err := look(ctx, w)
	if err != nil { // an engine stopped after the targets were checked
		return len(w.Targets)
	}
	return len(present(found))
}

// askTerminal asks the user for confirmation. Without a terminal it returns an error.
func (s *app) askTerminal(ctx context.Context, what string) error {
	if !term.IsTerminal(s.Err) || !term.IsTerminal(os.Stdin) {
		return fmt.Errorf("%s: add --yes, or reduce it with --scale, --rounds or fewer targets", what)
	}
	fmt.Fprintf(s.Err, "tare: %s. Begin? [y/N] ", what)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(s.Err)
	}
	return errors.New("nothing was started")
}
