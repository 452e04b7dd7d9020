package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// requirement is a Python package pinned by version and hash.
type requirement struct {
	name, version, sha256 string
}

func (r requirement) line() string {
	return fmt.Sprintf("%s==%s --hash=sha256:%s\n", r.name, r.version, r.sha256)
}

// The pinned Python packages. chdb-core holds ClickHouse 26.9.2.1 (182 MB);
// setuptools is what pip reads the flights package's metadata with.
func chdbCore() requirement {
	return requirement{"chdb-core", "26.9.0", "707e2ec3fe0f7953bac97942eaeb7a1ed1d66b1e56ecef3f0aa2130f61f6e735"}
}

func setuptools() requirement {
	return requirement{"setuptools", "80.9.0", "062d34222ad13e0cc312a4c02d73f059e86a4acbfbdea8f8f76b28c99f306922"}
}

// venv makes the virtual environment that gives us a pip of our own: the
// system's may be absent, or refuse to work.
func (p *preparer) venv(ctx context.Context) (python string, err error) {
	if err := p.demand(ctx, hasPythonVenv()); err != nil {
		return "", err
	}
	dir, err := p.once(ctx, "venv-1", func(ctx context.Context, dir string) error {
		if err := p.run(ctx, "python3 -m venv", nil, "python3", "-m", "venv", dir); err != nil {
			return err
		}
		return p.pip(ctx, "installing", dir+"/bin/python", setuptools(), "install", "--no-deps")
	})
	return filepath.Join(dir, "bin", "python"), err
}

// pip runs one pip command for one pinned package. pip refuses a file whose
// hash is not the pinned one.
func (p *preparer) pip(ctx context.Context, verb, python string, r requirement, args ...string) error {
	f, err := os.CreateTemp("", tempPrefix+"requirements-*.txt")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.WriteString(r.line()); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	argv := append([]string{python, "-m", "pip", "--no-input", "--disable-pip-version-check"}, args...)
	argv = append(argv, "-q", "--require-hashes", "-r", f.Name())
	return p.retry(ctx, func() error {
		return p.run(ctx, verb+" "+r.name+" "+r.version, nil, argv...)
	})
}

// chdb returns the directory that holds the engine of 26.9.
func (p *preparer) chdb(ctx context.Context) (string, error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("ClickHouse 26.9 of the lab is pinned for amd64, not for %s", runtime.GOARCH)
	}
	r := chdbCore()
	dir, err := p.once(ctx, r.name+"-"+r.version+"-"+r.sha256[:8], func(ctx context.Context, dir string) error {
		python, err := p.venv(ctx)
		if err != nil {
			return err
		}
		return p.pip(ctx, "downloading (182 MB)", python, r, "install", "--only-binary", ":all:", "--no-deps", "--no-compile", "--target", dir)
	})
	return filepath.Join(dir, "chdb"), err
}

// oldClickHouse returns the binary of ClickHouse 18.16: the installed one, or
// else that of Debian's package, unpacked into the cache. The package is not
// installed, because that would start a service; its libraries are.
func (p *preparer) oldClickHouse(ctx context.Context) (string, error) {
	for _, path := range []string{"clickhouse-server", "/usr/sbin/clickhouse-server"} {
		if found, err := exec.LookPath(path); err == nil && isOldClickHouse(found) {
			return found, nil
		}
	}
	dir, err := p.once(ctx, "clickhouse-server-18.16", p.unpackOldClickHouse)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "usr", "sbin", "clickhouse-server")
	// The cache may have come from a machine where the libraries were there.
	if err := p.demand(ctx, hasClickHouseCommon()); err != nil {
		return "", err
	}
	if !isOldClickHouse(binary) {
		return "", fmt.Errorf("%s does not run here as ClickHouse 18.16: remove %s and try again", binary, dir)
	}
	return binary, nil
}

func (p *preparer) unpackOldClickHouse(ctx context.Context, dir string) error {
	if err := p.demand(ctx, hasClickHouseCommon()); err != nil {
		return err
	}
	// apt checks the package against the signed index of the distribution.
	download := "cd " + dir + " && apt-get -q -oAPT::Sandbox::User=root download clickhouse-server"
	err := p.retry(ctx, func() error {
		err := p.run(ctx, "downloading clickhouse-server 18.16", nil, "/bin/sh", "-c", download)
		if err != nil && os.Geteuid() == 0 {
			// The lists of packages may be missing, or older than the mirror.
			err = errors.Join(err, p.aptUpdate(ctx))
		}
		return err
	})
	if err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(dir, "clickhouse-server_18.16*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("this distribution's clickhouse-server is not 18.16: the lab needs Debian 12 or an Ubuntu that has it")
	}
	if err := p.run(ctx, "unpacking clickhouse-server", nil, "dpkg-deb", "-x", debs[0], dir); err != nil {
		return err
	}
	return os.Remove(debs[0])
}

// hasClickHouseCommon stands for the shared library that is the server, with
// all that it links.
func hasClickHouseCommon() program {
	return program{"the libraries of clickhouse-server 18.16", []string{"clickhouse-common"}, func() bool {
		libs, err := filepath.Glob("/usr/lib/*/libclickhouse.so.18.16*")
		return err == nil && len(libs) > 0
	}}
}

// isOldClickHouse looks at what the binary links: it has no --version.
func isOldClickHouse(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(libs, func(lib string) bool { return strings.HasPrefix(lib, "libclickhouse.so.18.16") })
}
