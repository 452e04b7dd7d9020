package job

import (
	"errors"
	"path/filepath"
)

func (d *decoder) spoolFields(s *Spool) []field {
	return []field{
		{key: "dir", typ: "text", def: "`$TMPDIR`, else `/var/tmp`, else `/tmp`", read: d.textField(&s.Dir, checkAbsolute),
			doc: "A directory on a disk, as an absolute path. It must be writable if it is given. Where the default cannot be written, or is in memory (tmpfs), a run does without. Nothing stays there after a run, whatever ended it."},
		{key: "max_bytes", typ: "size", def: "`10GB`, or half of what is free there if that is less", read: d.size(&s.MaxBytes, 0),
			doc: "Bound of all slices together. If it is given, as much must be free when a run begins. `0` turns the spool off."},
	}
}

func checkAbsolute(s string) error {
	if !filepath.IsAbs(s) {
		return errors.New("must be an absolute path")
	}
	return nil
}

func (d *decoder) onChange(s *Source) func(*node) {
	return func(n *node) {
		if v, ok := d.choice(n, []string{string(ChangeWarn), string(ChangeFail), string(ChangeRerun)}, nil); ok {
			s.OnChange = OnChange(v)
		}
	}
}
