// Panics pass timed functions and are caught, on two threads.
use std::io::{Read, Write};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static LEAF: AtomicUsize = AtomicUsize::new(0);
static MIDDLE: AtomicUsize = AtomicUsize::new(0);
static CAUGHT: AtomicUsize = AtomicUsize::new(0);

#[no_mangle]
#[inline(never)]
pub extern "Rust" fn leaf(number: usize) -> usize {
    LEAF.fetch_add(1, SeqCst);
    if number % 3 == 0 {
        panic!("every third");
    }
    std::hint::black_box(number)
}

#[no_mangle]
#[inline(never)]
pub extern "Rust" fn middle(number: usize) -> usize {
    MIDDLE.fetch_add(1, SeqCst);
    std::hint::black_box(leaf(number)) + 1
}

fn work() {
    for i in 0..500 {
        if catch_unwind(|| middle(i)).is_err() {
            CAUGHT.fetch_add(1, SeqCst);
        }
        std::thread::sleep(std::time::Duration::from_micros(1500));
    }
}

fn await_line() {
    let mut one = [0u8];
    while std::io::stdin().read(&mut one).unwrap() == 1 && one[0] != b'\n' {}
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    await_line();
    let other = std::thread::spawn(work);
    work();
    other.join().unwrap();
    let (leaf, middle, caught) = (LEAF.load(SeqCst), MIDDLE.load(SeqCst), CAUGHT.load(SeqCst));
    println!("{{\"leaf\": {leaf}, \"middle\": {middle}, \"caught\": {caught}}}");
    std::io::stdout().flush().unwrap();
    await_line();
    std::process::exit((caught % 100) as i32);
}
