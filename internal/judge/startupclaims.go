package judge

import "github.com/tare-bench/tare/record"

// The names of claims in notes.
const (
	claimSum     = "sum"
	claimCredits = "credits"
	claimWall    = "wall"
)

// A claim is wrong when it is off by more than figures that were rounded by hand
// can be.
const (
	claimSlack = 10e6 // ns
	claimShare = 0.01 // of what it should be
)

// claimsOf sets the figures of notes beside what the others give: the sum of all
// parts, the wall time that was measured, and the engine's credits, which are the
// wall time less the runtime's calls.
func claimsOf(s *record.Start) []StartupClaim {
	var sum, calls int64
	for _, x := range s.Spans {
		sum += x.Ended - x.Began
		if x.Kind == record.KindCall {
			calls += x.Ended - x.Began
		}
	}
	wall := s.Ended - s.Began
	var all []StartupClaim
	for _, c := range s.Claims {
		claim := StartupClaim{StartClaim: c}
		switch {
		case c.Name == claimSum && sum > 0:
			claim.Follows = sum
		case c.Name == claimCredits && s.Ended != 0:
			claim.Follows = wall - calls
		case c.Name == claimWall && s.Ended != 0:
			claim.Follows = wall
		default:
			continue // nothing to hold it against
		}
		claim.Off = c.Value - claim.Follows
		off := float64(max(claim.Off, -claim.Off))
		claim.Wrong = off > claimSlack && off > claimShare*float64(claim.Follows)
		all = append(all, claim)
	}
	return all
}
