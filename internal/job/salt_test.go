package job

import (
	"encoding/json"
	"strings"
	"testing"
)

// salted is a job file with a salt.
func salted(salt string) string {
	return `
name: j
source: {addresses: ["a:9000"], cluster: c, table: t}
dimensions: [shop_id, src]
metrics: {pv: count()}
periods: [DAY]
timezone: UTC
sink:
  hbase:
    clusters: [{zookeeper: ["zk:2181"]}]
    table: t
    row_key: "{salt}|{shop_id}|{src:esc}|{date}"
    salt: ` + salt + "\n"
}

func TestSalt(t *testing.T) {
	for _, tt := range []struct {
		yaml, json, describe string
		width                int
	}{
		// What was written before the functions must keep the hash of its job.
		{"{over: [shop_id], buckets: 64}", `{"Over":[0],"Buckets":64}`, "salt of 64 buckets over [0]", 2},
		{"{over: [shop_id], buckets: 64, hash: md5, form: hex}", `{"Over":[0],"Buckets":64}`, "salt of 64 buckets over [0]", 2},
		{"{over: [src, shop_id], buckets: 257, hash: murmur3, form: binary}", `{"Over":[1,0],"Buckets":257,"Hash":"murmur3","Binary":true}`,
			"salt of 257 buckets over [1 0], murmur3, binary", 2},
		{"{over: [src], buckets: 256, hash: crc32, form: binary}", `{"Over":[1],"Buckets":256,"Hash":"crc32","Binary":true}`, "salt of 256 buckets over [1], crc32, binary", 1},
		{"{over: [src], prefix: 3, hash: fnv1a}", `{"Over":[1],"Buckets":0,"Hash":"fnv1a","Prefix":3}`, "salt of a prefix of 3 over [1], fnv1a", 3},
		{"{hash: phoenix, buckets: 16}", `{"Over":null,"Buckets":16,"Hash":"phoenix","Binary":true}`, "salt of 16 buckets over [], phoenix, binary", 1},
	} {
		j, err := Parse("j.yaml", []byte(salted(tt.yaml)), Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.yaml, err)
			continue
		}
		s := j.HBase.Salt
		if text, err := json.Marshal(s); err != nil || string(text) != tt.json || s.Describe() != tt.describe || s.Width() != tt.width {
			t.Errorf("%s is %s, %q, %d bytes wide, %v", tt.yaml, text, s.Describe(), s.Width(), err)
		}
	}
}

func TestSaltRefused(t *testing.T) {
	for yaml, want := range map[string]string{
		"{over: [shop_id]}":                                      "write buckets: 64, or prefix: 2",
		"{buckets: 16}":                                          "over no dimension",
		"{over: [shop_id], buckets: 1}":                          "2 to 65536",
		"{over: [shop_id], buckets: 16, prefix: 2}":              "keep one of the two",
		"{over: [shop_id], prefix: 9, hash: crc32}":              "1 to 8",
		"{over: [shop_id], buckets: 16, hash: sha1}":             "known: md5, murmur3",
		"{over: [shop_id], buckets: 16, form: base64}":           "known: hex, binary",
		"{over: [shop], buckets: 16}":                            "unknown dimension",
		"{over: [shop_id], buckets: 16, hash: phoenix}":          "remove over",
		"{buckets: 16, hash: phoenix, form: hex}":                "one byte",
		"{buckets: 1000, hash: phoenix}":                         "SALT_BUCKETS",
		"{over: [shop_id], buckets: 16, hash: crc32, prefix: 0}": "prefix",
		"[16]": "a mapping",
	} {
		_, err := Parse("j.yaml", []byte(salted(yaml)), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: no %q in %v", yaml, want, err)
		}
	}
}
