package mover

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ck2hbase/ck2hbase/internal/hbase"
	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A family is compared with what the file says, and with nothing else.
func TestDifferences(t *testing.T) {
	family := map[string]string{"COMPRESSION": "SNAPPY", "TTL": "FOREVER", "VERSIONS": "3", "BLOOMFILTER": "NONE"}
	h := job.HBase{Family: "f", Create: job.Create{Compression: "NONE", Versions: 2, TTL: time.Hour, BlockSize: 64 << 10}}
	if got := differences(h, family); got != nil {
		t.Errorf("a file that says nothing: %q", got)
	}
	h.Create.Given = []string{"COMPRESSION", "TTL", "VERSIONS", "BLOCKSIZE"}
	want := []string{"COMPRESSION is SNAPPY, where the job file says NONE", "TTL is 2147483647, where the job file says 3600", "VERSIONS is 3, where the job file says 2"}
	if d := cmp.Diff(want, differences(h, family)); d != "" {
		t.Error(d)
	}
}

// Regions at the quantiles of a sample take the same weight each, whatever the
// keys look like, and their bounds are as short as can be.
func TestQuantiles(t *testing.T) {
	var keys []weightedKey
	for i := range 4000 {
		keys = append(keys, weightedKey{fmt.Appendf(nil, "%08d|x|2026-11-29", i*i), 1000})
	}
	splits := quantiles(keys) // four million keys
	if len(splits) != 15 {
		t.Fatalf("%d splits", len(splits))
	}
	regions := []hbase.Region{{}}
	for i, s := range splits {
		if len(s) > 8 {
			t.Errorf("the bound %q is longer than need be", s)
		}
		regions[i].End = s
		regions = append(regions, hbase.Region{Start: s})
	}
	if _, share := hottest(regions, keys); share > 1.0/16+0.001 {
		t.Errorf("a region takes %f", share)
	}
	if splits := quantiles(keys[:10]); splits != nil {
		t.Errorf("few keys are split at %q", splits)
	}
	same := []weightedKey{{[]byte("a"), 1e6}, {[]byte("a"), 1e6}, {[]byte("b"), 1e6}}
	if d := cmp.Diff([][]byte{[]byte("b")}, quantiles(same)); d != "" {
		t.Error(d)
	}
}
