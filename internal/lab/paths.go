package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// EnvCache names the environment variable that moves the download cache.
const EnvCache = "CK2HBASE_CACHE"

// modulePath tells this repository's go.mod from one that vendors it.
const modulePath = "github.com/ck2hbase/ck2hbase"

// CacheDir returns the directory that holds the downloaded servers and data:
// $CK2HBASE_CACHE, else .cache at the root of the repository around the
// working directory, else a folder of the user's own cache directory. The
// directory is created when missing.
func CacheDir() (string, error) {
	dir, err := cacheDir()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	return dir, nil
}

func cacheDir() (string, error) {
	if dir := os.Getenv(EnvCache); dir != "" {
		return dir, nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cache directory: %w", err)
	}
	if root := repositoryRoot(wd); root != "" {
		return filepath.Join(root, ".cache"), nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache directory: %w (set %s)", err, EnvCache)
	}
	return filepath.Join(base, "ck2hbase"), nil
}

// repositoryRoot walks up from dir to this module's go.mod; "" when outside.
func repositoryRoot(dir string) string {
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(bytes.TrimSpace(mod), []byte("module "+modulePath+"\n")) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
