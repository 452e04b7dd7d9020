package lab

import "testing"

func TestSmoke(t *testing.T) {
	c := Shared(t).ClickHouse(t)
	for _, n := range c.Nodes {
		out, err := n.Query(t.Context(), "SELECT hostName(), cluster, shard_num, replica_num, host_name, port, is_local, errors_count FROM system.clusters WHERE cluster='lab'")
		t.Log(out, err)
		out, err = n.Query(t.Context(), "SELECT count(), groupUniqArray(tcpPort()) FROM cluster('lab', system.one)")
		t.Log(out, err)
		out, err = n.Query(t.Context(), "SELECT name, value FROM system.settings WHERE name IN ('max_threads','implicit_select','readonly') FORMAT TSV")
		t.Log(out, err)
		out, err = n.Query(t.Context(), "SELECT name FROM system.users ")
		t.Log(out, err)
	}
	t.Log(Shared(t).HBase(t).Quorum())
}
