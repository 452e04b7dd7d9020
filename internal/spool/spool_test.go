package spool

import (
	"bufio"
	"bytes"
	"errors"
	"math"
	"math/big"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ck2hbase/ck2hbase/internal/failure"
	"github.com/ck2hbase/ck2hbase/internal/row"
)

func values() *rapid.Generator[row.Value] {
	return rapid.Custom(func(t *rapid.T) row.Value {
		v := row.Value{Kind: row.Kind(rapid.IntRange(int(row.Bool), int(row.DateTime)).Draw(t, "kind"))}
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			v.Null = true
			return v
		}
		switch v.Kind {
		case row.Bool:
			v.Num = rapid.Uint64Range(0, 1).Draw(t, "bool")
		case row.String:
			v.Str = string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes"))
		case row.BigInt, row.Decimal:
			v.Big = new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 33).Draw(t, "big"))
			if rapid.Bool().Draw(t, "negative") {
				v.Big.Neg(v.Big)
			}
		default:
			v.Num = rapid.Uint64().Draw(t, "num")
		}
		return v
	})
}

func batches() *rapid.Generator[*row.Batch] {
	return rapid.Custom(func(t *rapid.T) *row.Batch {
		b := &row.Batch{Width: rapid.IntRange(1, 5).Draw(t, "width")}
		n := b.Width * rapid.IntRange(0, 20).Draw(t, "rows")
		b.Values = rapid.SliceOfN(values(), n, n).Draw(t, "values")
		return b
	})
}

var sameBatch = cmp.Options{
	cmp.Comparer(func(a, b *big.Int) bool { return a == nil && b == nil || a != nil && b != nil && a.Cmp(b) == 0 }),
	cmp.Transformer("values", func(b row.Batch) []row.Value { return append([]row.Value{}, b.Values...) }),
}

// A queue gives back what was pushed, in order, however pushes and pops mix,
// and its bytes are free again at the end.
func TestFirstInFirstOut(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		s, err := Open(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		s.fileSize = 400 // so that there are several
		q := s.Queue()
		var waiting []*row.Batch
		pop := func() {
			var got row.Batch
			ok, err := q.Pop(&got)
			if err != nil || ok != (len(waiting) > 0) {
				t.Fatalf("pop of %d batches: %v, %v", len(waiting), ok, err)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(*waiting[0], got, sameBatch); diff != "" || got.Width != waiting[0].Width {
				t.Fatalf("width %d (-pushed +popped):\n%s", got.Width, diff)
			}
			waiting = waiting[1:]
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				b := batches().Draw(t, "batch")
				if _, ok, err := q.Push(b); !ok || err != nil {
					t.Fatal(ok, err)
				}
				waiting = append(waiting, b)
			} else {
				pop()
			}
			if q.Len() != len(waiting) {
				t.Fatalf("%d batches wait, it says %d", len(waiting), q.Len())
			}
		}
		for len(waiting) > 0 {
			pop()
		}
		pop() // of none
		if used := s.Used(); used != 0 {
			t.Errorf("%d bytes are still taken", used)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	noFiles(t, dir)
}

// noFiles wants nothing left in the directory, by name or open.
func noFiles(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if open := openFiles(t, dir); len(open) > 0 {
		t.Errorf("still open: %q", open)
	}
}

// openFiles lists the open files of this process below a directory, removed ones included.
func openFiles(t *testing.T, dir string) []string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir) {
			open = append(open, target)
		}
	}
	return open
}

func texts(n int, s string) *row.Batch {
	b := &row.Batch{Width: 1}
	for range n {
		b.Values = append(b.Values, row.Value{Kind: row.String, Str: s})
	}
	return b
}

// Producer and consumer work at once; the bound holds for all queues together.
func TestBoundOverAllQueues(t *testing.T) {
	const bound, queues, each = 40_000, 4, 300
	s, err := Open(t.TempDir(), bound)
	if err != nil {
		t.Fatal(err)
	}
	s.fileSize = 2000
	var wg sync.WaitGroup
	for i := range queues {
		q := s.Queue()
		text := strings.Repeat(string(rune('a'+i)), 100)
		wg.Go(func() {
			for sent := 0; sent < each; {
				if used := s.Used(); used > bound {
					t.Errorf("%d bytes are taken of %d", used, bound)
				}
				if _, ok, err := q.Push(texts(sent%7, text)); err != nil {
					t.Error(err)
					return
				} else if ok {
					sent++
				}
			}
		})
		wg.Go(func() {
			var b row.Batch
			for got := 0; got < each; {
				ok, err := q.Pop(&b)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					continue
				}
				if b.Len() != got%7 || b.Len() > 0 && b.Values[0].Str != text {
					t.Errorf("batch %d has %d rows", got, b.Len())
				}
				got++
			}
		})
	}
	wg.Wait()
	if used := s.Used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

func TestNoRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, 3000)
	if err != nil {
		t.Fatal(err)
	}
	q := s.Queue()
	if _, ok, err := q.Push(texts(1, strings.Repeat("x", 4000))); ok || err != nil {
		t.Errorf("a batch beyond the bound: %v, %v", ok, err)
	}
	pushed := 0
	for ; ; pushed++ {
		if _, ok, err := q.Push(texts(1, strings.Repeat("x", 500))); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
	}
	if pushed != 5 {
		t.Errorf("%d batches of 500 bytes fit into 3000", pushed)
	}
	if len(openFiles(t, dir)) == 0 {
		t.Error("nothing is on disk")
	}
	if err := q.Close(); err != nil || s.Used() != 0 {
		t.Errorf("%v, %d bytes are taken after the end", err, s.Used())
	}
	noFiles(t, dir)
}

// Whoever may look into the directory sees no file, or one that it cannot read.
func TestPrivate(t *testing.T) {
	dir := t.TempDir()
	f, err := createFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.(interface{ Stat() (os.FileInfo, error) }).Stat()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v can be opened by name", left)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestNotWritable(t *testing.T) {
	if _, err := Open(t.TempDir()+"/absent", 1000); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A full disk takes a part of a write.
type fullDisk struct {
	file
	room int
}

func (f *fullDisk) WriteAt(p []byte, at int64) (int, error) {
	if f.room -= len(p); f.room < 0 {
		n, err := f.file.WriteAt(p[:len(p)/2], at)
		if err == nil {
			err = syscall.ENOSPC
		}
		return n, err
	}
	return f.file.WriteAt(p, at)
}

// A disk that is full takes no batch in part, loses none that it took, and is
// not asked again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(1<<20, func() (file, error) {
		f, err := createFile(dir)
		return &fullDisk{f, 1000}, err
	})
	q := s.Queue()
	for i, want := range []bool{true, true, false, false} {
		_, ok, err := q.Push(texts(4, strings.Repeat("x", 100)))
		if ok != want || err != nil {
			t.Errorf("push %d: %v, %v", i, ok, err)
		}
	}
	if !errors.Is(s.Err(), syscall.ENOSPC) {
		t.Error(s.Err())
	}
	var b row.Batch
	for range 2 {
		if ok, err := q.Pop(&b); !ok || err != nil || b.Len() != 4 {
			t.Errorf("%v, %v, %d rows", ok, err, b.Len())
		}
	}
	if ok, err := q.Pop(&b); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	if s.Used() != 0 {
		t.Errorf("%d bytes are taken", s.Used())
	}
	noFiles(t, dir)
}

// A disk that gives back something else is found out.
func TestDamaged(t *testing.T) {
	for at := range int64(12) {
		s, err := Open(t.TempDir(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		q := s.Queue()
		if _, ok, err := q.Push(texts(2, "text")); !ok || err != nil {
			t.Fatal(ok, err)
		}
		var one [1]byte
		if _, err := q.files[0].file.ReadAt(one[:], at); err != nil {
			t.Fatal(err)
		}
		one[0] ^= 0x21
		if _, err := q.files[0].file.WriteAt(one[:], at); err != nil {
			t.Fatal(err)
		}
		if ok, err := q.Pop(new(row.Batch)); ok || failure.ClassOf(err) != failure.Transient {
			t.Errorf("byte %d: %v, %v", at, ok, err)
		}
		q.Close()
	}
}

// What has no encoding is an error rather than another value.
func TestNoEncoding(t *testing.T) {
	s, err := Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	q := s.Queue()
	defer q.Close()
	for _, v := range []row.Value{{}, {Kind: row.DateTime + 1}, {Kind: row.Decimal}} {
		if _, ok, err := q.Push(&row.Batch{Width: 1, Values: []row.Value{v}}); ok || err == nil {
			t.Errorf("%+v: %v, %v", v, ok, err)
		}
	}
	if s.Err() != nil || s.Used() != 0 {
		t.Errorf("%v, %d", s.Err(), s.Used())
	}
}

// No bytes make reading panic, or take memory beyond the limit.
func FuzzReadValue(f *testing.F) {
	for _, v := range []row.Value{
		{Kind: row.UInt, Num: math.MaxUint64}, {Kind: row.Int, Num: 1 << 63}, {Kind: row.String, Str: "a\x00b"},
		{Kind: row.Decimal, Big: big.NewInt(-255)}, {Kind: row.Float, Null: true}, {Kind: row.Float, Num: math.Float64bits(math.NaN())},
	} {
		b, err := appendValue(nil, &v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{byte(row.String), 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := readValue(bufio.NewReader(bytes.NewReader(b)), int64(len(b)))
		if err != nil {
			return
		}
		again, err := appendValue(nil, &v)
		if err != nil {
			t.Fatal(err)
		}
		w, err := readValue(bufio.NewReader(bytes.NewReader(again)), int64(len(again)))
		if diff := cmp.Diff(v, w, sameBatch); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func BenchmarkPushPop(b *testing.B) {
	s, err := Open(b.TempDir(), 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	q := s.Queue()
	defer q.Close()
	in := texts(10_000, "a text of some length")
	var out row.Batch
	var bytes int64
	for b.Loop() {
		n, ok, err := q.Push(in)
		if !ok || err != nil {
			b.Fatal(ok, err)
		}
		bytes = n
		if _, err := q.Pop(&out); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(bytes)
}
