// Reserves a project for this program while it works. To read: the tests do not compile it.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"time"
)

// exclusiveLock is the content of the lock file.
type exclusiveLock struct {
	Holder    string    `json:"holder"`
	PID       int       `json:"pid"`
	Hostname  string    `json:"hostname"`
	StartedAt time.Time `json:"started_at"`
	Version   string    `json:"version,omitempty"`
}

// acquire creates the lock file, and fails if it exists.
func acquire(folder, holder string) (release func() error, err error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	lock := exclusiveLock{Holder: holder, PID: os.Getpid(), Hostname: hostname, StartedAt: time.Now().UTC()}
	text, err := json.MarshalIndent(lock, "", "  ")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, ".exclusive-lock")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(text); err != nil {
		_ = file.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return func() error { return os.Remove(path) }, file.Close()
}

func main() {
	release, err := acquire(".tenure", "my-tool")
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			log.Printf("cannot release the lock: %v", err)
		}
	}()
	// Work on the project here.
}
