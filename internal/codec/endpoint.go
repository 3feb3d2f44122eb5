package codec

import (
	"log/slog"
	"mime"
	"net/http"
	"slices"

	"github.com/rs/cors"
	"go.temporal.io/sdk/converter"
)

const (
	// PathPrefix is where the endpoint is mounted; clients are given it as the address
	// of a codec server.
	PathPrefix = "/codec"
	// requestBytes bounds a request: a payload of 2 MiB in base64, a few times.
	requestBytes = 8 << 20
)

// EndpointOptions say who may use the endpoint.
type EndpointOptions struct {
	// TokensFile holds the SHA-256 of every allowed token; required.
	TokensFile string
	// Origins are the Web UIs whose pages may ask from a browser: https://ui.example.
	Origins []string
	Logger  *slog.Logger // nil discards
}

// Endpoint returns what encrypts and decrypts for the Temporal Web UI and CLI: POST
// /codec/encode and /codec/decode, and /codec/login, where a browser trades a token for
// a cookie. Nothing is answered without a token, on loopback neither: a website that
// somebody visits can reach that, too. Its error is about the tokens' file.
func (r *Ring) Endpoint(o EndpointOptions) (http.Handler, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	known := tokens{file: o.TokensFile, log: o.Logger}
	if _, err := known.read(); err != nil {
		return nil, err
	}
	// The cookie is of no use to the page of another site, whatever a browser sends.
	strangers := http.NewCrossOriginProtection()
	for _, origin := range o.Origins {
		if err := strangers.AddTrustedOrigin(origin); err != nil {
			return nil, err
		}
	}
	payloads := known.require(jsonOnly(http.MaxBytesHandler(converter.NewPayloadCodecHTTPHandler(r), requestBytes)))
	routes := http.NewServeMux()
	routes.Handle("POST "+PathPrefix+"/encode", payloads)
	routes.Handle("POST "+PathPrefix+"/decode", payloads)
	routes.HandleFunc("GET "+loginPath, showLogin)
	routes.HandleFunc("POST "+loginPath, known.login)
	return allowOrigins(o.Origins).Handler(strangers.Handler(routes)), nil
}

// allowOrigins answers preflights. An empty list of rs/cors would allow everybody.
func allowOrigins(origins []string) *cors.Cors {
	return cors.New(cors.Options{
		AllowOriginFunc:  func(origin string) bool { return slices.Contains(origins, origin) },
		AllowedMethods:   []string{http.MethodPost},
		AllowedHeaders:   []string{"Authorization", "Content-Type", "X-Namespace"},
		AllowCredentials: true,
	})
}

// jsonOnly keeps out what a form of any website can send without a preflight.
func jsonOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			http.Error(w, "Content-Type is not application/json", http.StatusUnsupportedMediaType)
			return
		}
		next.ServeHTTP(w, r)
	})
}
