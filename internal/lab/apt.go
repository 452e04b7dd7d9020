package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// program is something that must be on this machine before a download can be
// used, with the Debian and Ubuntu packages that bring it.
type program struct {
	what     string
	packages []string
	present  func() bool
}

// demand installs the programs that are missing, or says how to.
func (p *preparer) demand(ctx context.Context, programs ...program) error {
	var what, packages []string
	for _, prog := range programs {
		if !prog.present() {
			what = append(what, prog.what)
			packages = append(packages, prog.packages...)
		}
	}
	if len(packages) == 0 {
		return nil
	}
	how := "apt-get install --no-install-recommends " + strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s; as root on Debian or Ubuntu: %s", strings.Join(what, ", "), how)
	}
	unlock, err := p.lock(ctx, "apt")
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.ContainsFunc(programs, func(prog program) bool { return !prog.present() }) {
		return nil // installed by the one we waited for
	}
	p.log.Info("installing what is missing on this machine: " + strings.Join(what, ", ") + " (" + how + ")")
	if err := p.aptInstall(ctx, packages); err != nil {
		return err
	}
	for _, prog := range programs {
		if !prog.present() {
			return fmt.Errorf("%s is still missing after %s", prog.what, how)
		}
	}
	return nil
}

// aptWait lets apt wait for another apt that holds its locks instead of failing.
const aptWait = "-oDPkg::Lock::Timeout=300"

func (p *preparer) aptUpdate(ctx context.Context) error {
	return p.run(ctx, "apt-get update", nil, "apt-get", aptWait, "-q", "update")
}

func (p *preparer) aptInstall(ctx context.Context, packages []string) error {
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if err := p.retry(ctx, func() error { return p.aptUpdate(ctx) }); err != nil {
		return err
	}
	install := append([]string{"apt-get", aptWait, "-q", "-y", "--no-install-recommends", "install"}, packages...)
	return p.retry(ctx, func() error {
		return p.run(ctx, "apt-get install "+strings.Join(packages, " "), env, install...)
	})
}

func succeeds(name string, args ...string) bool {
	return exec.Command(name, args...).Run() == nil
}

func hasPythonVenv() program {
	return program{"Python 3 with venv", []string{"python3-venv"}, func() bool {
		return succeeds("python3", "-c", "import venv, ensurepip")
	}}
}

func hasMaven() program {
	return program{"Maven", []string{"maven"}, func() bool {
		_, err := exec.LookPath("mvn")
		return err == nil
	}}
}

func hasJDK17() program {
	return program{"JDK 17", []string{"openjdk-17-jdk-headless"}, func() bool { return javaBinary() != "" }}
}

// javaBinary returns a Java 17, the version that HBase 2.6 is tried with here:
// that of JAVA_HOME, of the usual place of the Debian package, or of the path.
func javaBinary() string {
	candidates := []string{"/usr/lib/jvm/java-17-openjdk-amd64/bin/java", "/usr/lib/jvm/java-17-openjdk-arm64/bin/java", "java"}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		candidates = append([]string{home + "/bin/java"}, candidates...)
	}
	for _, java := range candidates {
		path, err := exec.LookPath(java)
		if err != nil {
			continue
		}
		out, err := exec.Command(path, "-version").CombinedOutput()
		if err == nil && strings.Contains(string(out), `version "17`) {
			return path
		}
	}
	return ""
}
