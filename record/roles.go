package record

import (
	"errors"
	"fmt"
)

// What a role can have used at most. Beyond it a figure is of another unit.
const (
	maxRoles     = 64
	maxRoleName  = 64
	maxProcesses = 1 << 22 // the kernel's largest pid
	maxCPU       = 256 * int64(longestSpan)
	maxPSS       = 1 << 57 // the address space of x86 with five levels of page tables
)

// validateRoles says whether what a target's own processes used can be true.
// Roles that this version does not know are as good as those it does.
func validateRoles(roles []Usage) error {
	if len(roles) > maxRoles {
		return fmt.Errorf("%d roles: a batch has at most %d", len(roles), maxRoles)
	}
	seen := make(map[Role]bool, len(roles))
	for i := range roles {
		u := &roles[i]
		if u.Role == "" {
			return errors.New("a use of resources without a role")
		}
		if len(u.Role) > maxRoleName {
			return fmt.Errorf("a role's name is %d bytes long: at most %d are read", len(u.Role), maxRoleName)
		}
		if seen[u.Role] {
			return fmt.Errorf("role %s is there twice", u.Role)
		}
		seen[u.Role] = true
		if err := u.validate(); err != nil {
			return fmt.Errorf("role %s: %w", u.Role, err)
		}
	}
	return nil
}

func (u *Usage) validate() error {
	for _, a := range []struct {
		amount
		most int64
	}{
		{amount{"before", int64(u.Before)}, maxProcesses}, {amount{"after", int64(u.After)}, maxProcesses},
		{amount{"unread", int64(u.Unread)}, 2 * maxProcesses}, {amount{"cpu", u.CPU}, maxCPU},
		{amount{"pss_before", u.PSSBefore}, maxPSS}, {amount{"pss_peak", u.PSSPeak}, maxPSS}, {amount{"pss_after", u.PSSAfter}, maxPSS},
	} {
		if err := notNegative(a.amount); err != nil {
			return err
		}
		if a.value > a.most {
			return fmt.Errorf("%s is %d: more than %d cannot be", a.name, a.value, a.most)
		}
	}
	switch {
	case u.PSSPeak < max(u.PSSBefore, u.PSSAfter):
		return fmt.Errorf("pss_peak %d is below %d, which it had before or after", u.PSSPeak, max(u.PSSBefore, u.PSSAfter))
	case u.Before == 0 && u.PSSBefore > 0:
		return fmt.Errorf("pss_before is %d without a process before", u.PSSBefore)
	case u.After == 0 && u.PSSAfter+u.CPU > 0:
		return fmt.Errorf("pss_after is %d and cpu %d without a process after", u.PSSAfter, u.CPU)
	}
	return nil
}
