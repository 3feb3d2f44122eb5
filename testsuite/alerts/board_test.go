package alerts_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dashboard is what Grafana is given, as far as it is read here.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query string `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int       `json:"id"`
	Title       string    `json:"title"`
	Description string    `json:"description"`
	Type        string    `json:"type"`
	At          place     `json:"gridPos"`
	Datasource  reference `json:"datasource"`
	Targets     []query   `json:"targets"`
}

type place struct{ H, W, X, Y int }

type reference struct{ Type, UID string }

type query struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

func board(t *testing.T) dashboard {
	t.Helper()
	raw, err := os.ReadFile(boardFile)
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(raw, &d))
	return d
}

func (d dashboard) queries() (all []query) {
	for _, p := range d.Panels {
		all = append(all, p.Targets...)
	}
	return all
}

// asPrometheusGetsIt is a query with what Grafana puts in: every provider, and a window.
func (q query) asPrometheusGetsIt(window string) string {
	return strings.NewReplacer("$provider", ".*", "$__rate_interval", window).Replace(q.Expr)
}

func TestTheDashboardIsWhole(t *testing.T) {
	t.Parallel()
	d := board(t)
	require.NotEmpty(t, d.UID)
	require.NotEmpty(t, d.Title)
	require.GreaterOrEqual(t, len(d.Panels), 10)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "two panels have the ID %d", p.ID)
		ids[p.ID] = true
		require.NotEmpty(t, p.Title)
		require.LessOrEqual(t, p.At.X+p.At.W, 24, p.Title)
		for x := p.At.X; x < p.At.X+p.At.W; x++ {
			for y := p.At.Y; y < p.At.Y+p.At.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s is over another panel", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.Equal(t, reference{"prometheus", "${datasource}"}, p.Datasource, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
	}
	left := regexp.MustCompile(`\$\w+`)
	for _, q := range d.queries() {
		require.Empty(t, left.FindString(q.asPrometheusGetsIt("1m")), "%s: a variable that nobody fills in", q.Expr)
	}
}
