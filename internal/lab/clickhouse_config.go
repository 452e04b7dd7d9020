package lab

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed assets/clickhouse.xml.tmpl
var clickHouseXML string

//go:embed assets/users.xml.tmpl
var usersXML string

//go:embed assets/chdbserver.py
var chdbServer string

// nodeConfig is what the two templates show.
type nodeConfig struct {
	Root                     string // 18.16 knows <yandex> only
	Dir                      string
	Old, InternalReplication bool
	TCP, HTTP, Interserver   int
	Shard, Replica           int
	Shards                   [][]*Node
	ZooKeeper                string // port
	MoverPassword            string
	ReadonlyPassword         string
}

func (c *Cluster) nodeConfig(dir string, n *Node, opts ClickHouseOptions) (nodeConfig, error) {
	cfg := nodeConfig{Root: "clickhouse", Dir: dir, Old: opts.Old, TCP: n.TCPPort, HTTP: n.HTTPPort,
		Shard: n.Shard, Replica: n.Replica, MoverPassword: MoverPassword, ReadonlyPassword: ReadonlyPassword}
	cfg.Shards = make([][]*Node, opts.Shards)
	for _, other := range c.Nodes {
		cfg.Shards[other.Shard-1] = append(cfg.Shards[other.Shard-1], other)
	}
	// Where the tables replicate, a Distributed table writes to one replica; on
	// 26.9 they cannot, and it has to write to all.
	cfg.InternalReplication = c.ZooKeeper != "" || opts.Replicas == 1
	if c.ZooKeeper != "" {
		_, port, err := net.SplitHostPort(c.ZooKeeper)
		if err != nil {
			return cfg, fmt.Errorf("address of ZooKeeper: %w", err)
		}
		cfg.ZooKeeper = port
	}
	if opts.Old {
		cfg.Root = "yandex"
		cfg.Interserver = n.interserver
	}
	return cfg, nil
}

// writeNodeFiles writes config.xml and users.xml with the caller's fragments
// in config.d and users.d beside them, which both versions merge.
func (c *Cluster) writeNodeFiles(dir string, n *Node, opts ClickHouseOptions) error {
	for _, sub := range []string{"data", "tmp", "user_files", "config.d", "users.d"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fmt.Errorf("configure %s: %w", n.Name, err)
		}
	}
	cfg, err := c.nodeConfig(dir, n, opts)
	if err != nil {
		return fmt.Errorf("configure %s: %w", n.Name, err)
	}
	files := map[string]string{"chdbserver.py": chdbServer}
	for name, text := range map[string]string{"config.xml": clickHouseXML, "users.xml": usersXML} {
		if files[name], err = render(name, text, cfg); err != nil {
			return fmt.Errorf("configure %s: %w", n.Name, err)
		}
	}
	for sub, fragments := range map[string][]string{"config.d": opts.ConfigXML, "users.d": opts.UsersXML} {
		for i, xml := range fragments {
			files[fmt.Sprintf("%s/%02d.xml", sub, i)] = fmt.Sprintf("<%s>%s</%s>", cfg.Root, xml, cfg.Root)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("configure %s: %w", n.Name, err)
		}
	}
	return nil
}

func render(name, text string, data any) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return "", err
	}
	return b.String(), nil
}
