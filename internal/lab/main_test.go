package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// envOwner makes the test binary play the owner of a lab instead of running
// tests, for the tests that kill an owner.
const envOwner = "LAB_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(envOwner) != "" {
		if err := ownerMain(); err != nil {
			fmt.Fprintln(os.Stderr, "owner:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// ownerMain starts one server of each kind, prints the state as one line of
// JSON and waits to be killed.
func ownerMain() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running, err := Start(ctx, Options{
		ClickHouse:    &ClickHouseOptions{Shards: 1},
		OldClickHouse: &ClickHouseOptions{Shards: 1},
		HBase:         &HBaseOptions{Heap: "512m"},
	})
	if err != nil {
		return err
	}
	// The servers must outlive everything but the process: the goroutine and
	// the thread that asked for them, too.
	if err := json.NewEncoder(os.Stdout).Encode(running.State()); err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return running.Stop()
}
