//! Ids that are not file names touch nothing, as inotify confirms.

#![cfg(target_os = "linux")]

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify;
use rustix::io::Errno;
use tenure_lock::ResumeLockError;

use super::{Fixture, list};

fn watch(paths: &[&Path]) -> OwnedFd {
    let watcher = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    for path in paths {
        inotify::add_watch(&watcher, *path, inotify::WatchFlags::ALL_EVENTS).unwrap();
    }
    watcher
}

fn events(watcher: &OwnedFd) -> usize {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(watcher, &mut buffer);
    let mut count = 0;
    loop {
        match reader.next() {
            Ok(_) => count += 1,
            Err(Errno::AGAIN) => return count,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_id_that_is_not_a_file_name_is_refused_and_nothing_is_touched() {
    let fixture = Fixture::new();
    let outside = fixture.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x.lock"), "").unwrap();
    let locks_dir = fixture.locks_dir();
    let watcher = watch(&[fixture.dir.path(), &outside, &locks_dir]);
    let absolute = outside.join("x").to_str().unwrap().to_owned();
    let bad = [
        "",
        ".",
        "..",
        ".hidden",
        "-rf",
        "../outside/x",
        "../../x",
        "a/../../outside/x",
        "a/b",
        "a\\b",
        &absolute,
        "a b",
        "a\nb",
        "a\0b",
        "ä",
        "a:b",
        "*",
        "~",
        &"x".repeat(129),
    ];
    for id in bad {
        for refusal in [
            fixture.manager.acquire(id).unwrap_err(),
            fixture.manager.acquire_forced(id).unwrap_err(),
            fixture.manager.holder(id).unwrap_err(),
        ] {
            assert!(matches!(refusal, ResumeLockError::InvalidId { .. }), "{id:?}: {refusal:?}");
        }
    }
    assert_eq!(events(&watcher), 0, "something was touched");
    assert_eq!(list(fixture.dir.path()), ["outside", "resume_locks"]);
}

#[test]
fn a_valid_id_touches_only_the_lock_directory() {
    let fixture = Fixture::new();
    let locks_dir = fixture.locks_dir();
    let (inside, outside) = (watch(&[&locks_dir]), watch(&[fixture.dir.path()]));
    fixture.manager.acquire(&"x".repeat(128)).unwrap().release().unwrap();
    assert!(events(&inside) > 0, "the watch would not notice");
    assert_eq!(events(&outside), 0);
}
