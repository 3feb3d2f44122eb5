package gcefake

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/compute/apiv1/computepb"
)

// Server is the Compute Engine of one or more projects, as an http.Handler.
type Server struct {
	URL   string // of a server that Start has started
	clock Clock
	mux   *http.ServeMux

	mu sync.Mutex
	agenda
	pace       Pace
	world      world
	operations map[key]*operation
	requests   map[string]*operation // by project and request ID
	serial     uint64
	troubles
	journal []Call
	past    []Happening
}

// world is what the projects have.
type world struct {
	projects  map[string]bool
	zones     map[string]bool
	machines  map[string]int32 // CPUs of a machine type, in every zone
	images    map[key]*computepb.Image
	networks  map[string]bool
	instances map[key]*instance
	disks     map[key]*disk
	firewalls map[key]*computepb.Firewall
	limits    map[quotaKey]float64
}

// Options are what a server begins with; zero values have defaults.
type Options struct {
	Clock    Clock    // the machine's
	Projects []string // CapturedProject
	Zones    []string // four of us-central1, three of europe-west1
	Pace     Pace
}

// New returns a server with the usual zones, machine types and public images.
func New(o Options) *Server {
	if o.Clock == nil {
		o.Clock = Wall{}
	}
	if o.Projects == nil {
		o.Projects = []string{CapturedProject}
	}
	if o.Zones == nil {
		o.Zones = usualZones()
	}
	s := &Server{
		clock: o.Clock, pace: o.Pace, world: newWorld(o), operations: map[key]*operation{},
		requests: map[string]*operation{}, serial: firstID, troubles: newTroubles(),
	}
	s.mux = s.routes()
	return s
}

// Start returns a server that listens on a port of loopback until the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := New(o)
	web := httptest.NewServer(s)
	s.URL = web.URL
	t.Cleanup(func() {
		s.Heal() // a call that is held would keep the server
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "//") { // ServeMux would redirect
		wrongRoute().send(w)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// SetPace changes how long things take, from now on.
func (s *Server) SetPace(p Pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace = p
}

// enter locks the server and brings its world to the present.
func (s *Server) enter() time.Time {
	s.mu.Lock()
	now := s.clock.Now()
	if now.Before(s.now) { // a clock that was read before another call was
		now = s.now
	}
	s.settle(now)
	return now
}

// firstID is as long as Google's are: clients must not read them as 32 or 53 bits.
const firstID = 4_611_686_018_427_387_904

func (s *Server) nextID() *uint64 {
	s.serial++
	id := s.serial
	return &id
}
