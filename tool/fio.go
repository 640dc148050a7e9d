package tool

import (
	"errors"

	"github.com/tare-bench/tare/plan"
)

func fioCommand(plan.Job, Place) ([]string, error) { return nil, errors.New("not written yet") }
func fioFiles(plan.Job, Place) ([]File, error)     { return nil, errors.New("not written yet") }
