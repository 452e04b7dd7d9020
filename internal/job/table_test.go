package job_test

import (
	"strings"
	"testing"

	"github.com/ck2hbase/ck2hbase/internal/job"
)

// A table of the default namespace has one name, with or without it: the client
// knows it without alone, and two jobs must not take one table for two.
func TestDefaultNamespace(t *testing.T) {
	for given, want := range map[string]string{"default:shop": "shop", "shop": "shop", "ns:shop": "ns:shop"} {
		text := strings.ReplaceAll(`
name: shop
source: {addresses: ["ck1:9000"], cluster: c3, table: ods.traffic}
dimensions: [shop_id]
metrics: {pv: sum(pv)}
sink: {hbase: {clusters: [{zookeeper: [zk1]}], table: "TABLE", row_key: "{shop_id}|{date}"}}
`, "TABLE", given)
		j, err := job.Parse("job.yaml", []byte(text), job.Options{})
		if err != nil || j.HBase.Table != want {
			t.Errorf("%s is %q, %v", given, j.HBase.Table, err)
		}
	}
}
