package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/egressfleet/egressfleet/api/v1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// after is so many seconds after noon.
func after(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestARowIsJudgedByWhatIsKnown(t *testing.T) {
	t.Parallel()
	shown := &v1.Proxy{}
	runs := func(run string, began, changed float64) row {
		return row{run: run, began: after(began), changed: after(changed)}
	}
	old := func(run string, began float64) row { return row{run: run, began: after(began)} }
	ends := func(run string, began, ended float64) row {
		return row{run: run, began: after(began), changed: after(began), ended: after(ended)}
	}
	goesOn := func(run string, began, ended float64) row {
		r := ends(run, began, ended)
		r.continued = true
		return r
	}
	for name, tc := range map[string]struct {
		was  *life // nil: nothing is known
		row  row
		want fate
	}{
		"a new one":                           {nil, runs("a", 0, 1), fateTaken},
		"a new one of an older worker":        {nil, old("a", 0), fateTaken},
		"one that ended before it was seen":   {nil, ends("a", 0, 5), fateOver},
		"a run before one that was not seen":  {nil, goesOn("a", 0, 5), fateOver},
		"the same row again":                  {&life{row: runs("a", 0, 1), shown: shown}, runs("a", 0, 1), fateTaken},
		"a change":                            {&life{row: runs("a", 0, 1), shown: shown}, runs("a", 0, 2), fateTaken},
		"a change that was overtaken":         {&life{row: runs("a", 0, 2), shown: shown}, runs("a", 0, 1), fateNone},
		"a row of before the first change":    {&life{row: runs("a", 0, 2), shown: shown}, old("a", 0), fateNone},
		"a change of an older worker's":       {&life{row: old("a", 0), shown: shown}, old("a", 0), fateTaken},
		"the first time that is said":         {&life{row: old("a", 0), shown: shown}, runs("a", 0, 1), fateTaken},
		"it ends":                             {&life{row: runs("a", 0, 1), shown: shown}, ends("a", 0, 5), fateOver},
		"it ends and cannot be shown":         {&life{row: runs("a", 0, 1)}, ends("a", 0, 5), fateOver},
		"it ends, told again":                 {&life{row: ends("a", 0, 5)}, ends("a", 0, 5), fateNone},
		"a late row of one that ended":        {&life{row: ends("a", 0, 5)}, runs("a", 0, 4), fateNone},
		"it goes on in another run":           {&life{row: runs("a", 0, 1), shown: shown}, goesOn("a", 0, 5), fateFollowed},
		"it goes on, told again":              {&life{row: goesOn("a", 0, 5), shown: shown}, goesOn("a", 0, 5), fateNone},
		"a late row of a run that is over":    {&life{row: goesOn("a", 0, 5), shown: shown}, runs("a", 0, 4), fateNone},
		"the run that follows":                {&life{row: goesOn("a", 0, 5), shown: shown}, runs("b", 5, 5.1), fateTaken},
		"the run that follows, not dated yet": {&life{row: goesOn("a", 0, 5), shown: shown}, old("b", 5), fateTaken},
		"the run that follows, before the end of the one before": {
			&life{row: runs("a", 0, 1), shown: shown}, runs("b", 5, 5.1), fateTaken,
		},
		"the end of the run before, after the one that follows": {
			&life{row: runs("b", 5, 5.1), shown: shown}, goesOn("a", 0, 5), fateNone,
		},
		"a late row of the run before":    {&life{row: runs("b", 5, 5.1), shown: shown}, runs("a", 0, 4), fateNone},
		"made again after its end":        {&life{row: ends("a", 0, 5)}, runs("b", 6, 6.1), fateTaken},
		"made again before its end":       {&life{row: runs("a", 0, 1), shown: shown}, runs("b", 6, 6.1), fateTaken},
		"the end of a former life":        {&life{row: runs("b", 6, 6.1), shown: shown}, ends("a", 0, 5), fateNone},
		"made again and gone, all unseen": {&life{row: runs("a", 0, 1), shown: shown}, ends("b", 6, 7), fateOver},
		"a later run goes on as well":     {&life{row: runs("a", 0, 1), shown: shown}, goesOn("b", 6, 7), fateFollowed},
		"a later run of one that is gone": {&life{row: ends("a", 0, 5)}, goesOn("b", 6, 7), fateOver},
		"reset, told after the end":       {&life{row: ends("a", 0, 5)}, runs("b", 0, 1), fateTaken},
		"reset to before its last change": {
			&life{row: row{run: "a", began: after(0), changed: after(3), ended: after(5)}}, runs("b", 0, 1), fateTaken,
		},
		"reset, told before the end": {&life{row: runs("a", 0, 1), shown: shown}, runs("b", 0, 2), fateTaken},
		"the end of what was reset":  {&life{row: runs("b", 0, 2), shown: shown}, ends("a", 0, 5), fateNone},
		"the end of what was reset, which had published later": {
			&life{row: runs("b", 0, 2), shown: shown},
			row{run: "a", began: after(0), changed: after(3), ended: after(5)},
			fateNone,
		},
		"a late row of what was reset": {&life{row: runs("b", 0, 2), shown: shown}, runs("a", 0, 1), fateNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var was life
			if tc.was != nil {
				was = *tc.was
			}
			require.Equal(t, tc.want, judge(was, tc.was != nil, tc.row))
		})
	}
}

func TestACountFitsWhatIsKnownAroundIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		count, before, after int64
		want                 bool
	}{
		"as many":                      {3, 3, 3, true},
		"one ended before the count":   {2, 3, 2, true},
		"one ended after the count":    {3, 3, 2, true},
		"one end was missed":           {2, 3, 3, false},
		"one that runs was missed":     {4, 3, 3, false},
		"one of two ends was missed":   {1, 3, 2, false},
		"nothing is there any more":    {0, 3, 0, true},
		"something nobody has told of": {1, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, fits(tc.count, tc.before, tc.after))
		})
	}
}

func TestTheClockOfTemporalIsKnownFromBelow(t *testing.T) {
	t.Parallel()
	var o offset
	require.False(t, o.known)
	o.saw(after(-3600), after(0)) // nothing has changed for an hour
	require.Equal(t, after(-3540), o.at(after(60)), "time goes on there as here")
	o.saw(after(70), after(60)) // its clock is ahead of ours
	require.Equal(t, after(110), o.at(after(100)))
	o.saw(after(60), after(60)) // an older row proves less
	require.Equal(t, after(110), o.at(after(100)))
	require.Equal(t, after(0), o.at(after(-10)), "also before it was seen")

	set := offset{}
	set.saw(after(300), after(0)) // and then it is set right, from five minutes ahead
	for s := 1.0; s <= 2*offsetKept.Seconds(); s++ {
		set.saw(after(s), after(s))
	}
	require.Equal(t, after(2000), set.at(after(2000)))
}

func TestOnlyWhoSaysWhenItChangesIsFollowed(t *testing.T) {
	t.Parallel()
	dated, undated := row{began: after(0), changed: after(1)}, row{began: after(2)}
	over := row{began: after(2), ended: after(3)}
	for name, tc := range map[string]struct {
		lives []row
		want  bool
	}{
		"nobody is there":                    {nil, false},
		"everyone says it":                   {[]row{dated, dated}, false},
		"one does not":                       {[]row{dated, undated}, true},
		"one that does not is over":          {[]row{dated, over}, false},
		"one that began just now is to come": {[]row{dated, {began: after(2.1)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := knowledge{lives: map[string]life{}}
			for i, r := range tc.lives {
				k.put(string(rune('a'+i)), life{row: r})
			}
			require.Equal(t, tc.want, k.undated(after(2)))
		})
	}
}
