// A server for snapshots. It works continuously, serves its profiles like every Go server, and has additional endpoints
// that misbehave. Prints its two addresses (http, https), and writes the certificate authority for the second to the
// file in its first argument. The second argument is a folder of profiles to serve. The server ends when its standard
// input is closed.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

var kept [][]byte

func main() {
	runtime.MemProfileRate = 4096
	log.SetOutput(io.Discard) // Hides errors that badly behaved clients cause.
	go work()
	// The third snapshot never arrives.
	var asked atomic.Int32
	http.HandleFunc("/twice", func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) > 2 {
			http.Error(w, "out of snapshots", http.StatusServiceUnavailable)
			return
		}
		http.DefaultServeMux.ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/heap", nil))
	})
	http.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Minute):
		case <-r.Context().Done():
		}
	})
	http.HandleFunc("/other-name", pprof.Handler("goroutine").ServeHTTP)
	http.HandleFunc("/closed", func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "user" || password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		pprof.Handler("heap").ServeHTTP(w, r)
	})
	http.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "<html>Not what you are looking for</html>")
	})
	http.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.Write([]byte("\x1f\x8b"))
	})
	// Redirects: the address follows the slash, and the scheme is in the path.
	for _, scheme := range []string{"http", "https"} {
		http.HandleFunc("/to-"+scheme+"/", func(w http.ResponseWriter, r *http.Request) {
			target := scheme + "://" + strings.TrimPrefix(r.URL.Path, "/to-"+scheme+"/")
			http.Redirect(w, r, target, http.StatusFound)
		})
	}
	// An endless answer.
	http.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("\x1f\x8b\x08"))
		for block := make([]byte, 1<<16); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	// An endless error message.
	http.HandleFunc("/endless-error", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "too much to say", http.StatusTeapot)
		for block := make([]byte, 1<<16); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	// The number of requests for a profile so far.
	var served atomic.Int32
	http.HandleFunc("/counted", func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		pprof.Handler("heap").ServeHTTP(w, r)
	})
	http.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, served.Load()) })
	// Files of the corpus, by name.
	http.Handle("/corpus/", http.StripPrefix("/corpus/", http.FileServer(http.Dir(os.Args[2]))))
	plain := httptest.NewServer(http.DefaultServeMux)
	authority, certificate := certificates()
	secure := httptest.NewUnstartedServer(http.DefaultServeMux)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	secure.StartTLS()
	check(os.WriteFile(os.Args[1], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}), 0o644))
	fmt.Println(plain.URL, secure.URL)
	io.Copy(io.Discard, os.Stdin)
}

// certificates creates an unknown certificate authority, and a certificate of this server signed by it.
func certificates() (authority []byte, server tls.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority of our own"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authority, err = x509.CreateCertificate(rand.Reader, issuer, issuer, key.Public(), key)
	check(err)
	subject := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: issuer.NotBefore, NotAfter: issuer.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	issued, err := x509.CreateCertificate(rand.Reader, subject, issuer, key.Public(), key)
	check(err)
	return authority, tls.Certificate{Certificate: [][]byte{issued}, PrivateKey: key}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func work() {
	for round := 0; ; round++ {
		for range 200 {
			allocate(round % 4)
		}
		time.Sleep(time.Millisecond)
	}
}

// allocate has a stack for each depth.
func allocate(depth int) {
	if depth > 0 {
		allocate(depth - 1)
		return
	}
	page := make([]byte, 2048)
	if len(kept) < 500 {
		kept = append(kept, page)
	}
}
