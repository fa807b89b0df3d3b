// An agent with Rancher's remotedialer: it connects to the URL of the first argument with the headers of the environment, and dials whatever the server asks for.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rancher/remotedialer"
)

func main() {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(os.Getenv("AUTHORITY")))
	dialer := &websocket.Dialer{
		TLSClientConfig:  &tls.Config{RootCAs: roots},
		HandshakeTimeout: 10 * time.Second,
	}
	headers := http.Header{}
	headers.Set("X-API-Tunnel-Token", os.Getenv("TOKEN"))
	headers.Set("X-API-Tunnel-Params", os.Getenv("PARAMS"))
	for {
		remotedialer.ClientConnect(context.Background(), os.Args[1], headers, dialer,
			func(proto, address string) bool { return proto == "tcp" }, nil)
	}
}
