//! Faults injected into runs, one after the other: kills, full and read-only disks, damaged files, two commands at once,
//! clocks that jump. After each, `fedcote run --resume` must end with the bits of an undisturbed run, or refuse with one
//! line that says what to do, after which it must.

mod bench;
mod faults;

use std::path::PathBuf;
use std::time::Instant;

use bench::Bench;
pub use bench::comparable;
use faults::Fault;

/// Injects so many faults; `seed` decides which, and is printed so that a failure can be had again.
pub fn run(count: u64, seed: u64) -> Result<(), String> {
    let program = build()?;
    let folder = std::env::temp_dir().join(format!("fedcote-torture-{}", std::process::id()));
    println!("{count} faults with seed {seed} in {}", folder.display());
    let bench = Bench::new(&program, &folder)?;
    let kinds: Vec<Fault> = Fault::ALL.into_iter().filter(|kind| bench.can(*kind)).collect();
    for missing in Fault::ALL.into_iter().filter(|kind| !kinds.contains(kind)) {
        println!("{missing:?}: left out, it needs the right to mount file systems");
    }
    let begun = Instant::now();
    let (mut refusals, mut resumed) = (0, 0);
    for number in 0..count {
        let fault = kinds[(number % kinds.len() as u64) as usize];
        // Every fault has its own numbers: `cargo xtask torture 1 SEED` need not repeat those before.
        let mut chance = Chance(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let outcome = bench.round(fault, &mut chance).map_err(|reason| {
            let kept = folder.display();
            format!("fault {number} with seed {seed}, {fault:?}: {reason} (see {kept})")
        })?;
        refusals += outcome.refusals;
        resumed += u64::from(outcome.refusals == 0);
        if (number + 1).is_multiple_of(100) {
            println!("{} faults, {:.0} s", number + 1, begun.elapsed().as_secs_f64());
        }
    }
    println!(
        "{count} faults: {resumed} resumed at once, {} after {refusals} refusals that said what to do; nothing \
         lost, nothing wrong",
        count - resumed
    );
    bench.leave();
    Ok(())
}

/// The program under test: `FEDCOTE_TORTURE_PROGRAM`, or the one built from here.
pub fn build() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("FEDCOTE_TORTURE_PROGRAM") {
        return Ok(program.into());
    }
    // With an example, which like tests has dependencies for development: without any, others have other features, and would
    // be built a second time.
    let build = ["build", "--quiet", "--workspace", "--bin", "fedcote", "--example", "draws"];
    crate::run(crate::cargo().args(build).current_dir(crate::root()))?;
    Ok(crate::target().join("debug/fedcote"))
}

/// Random numbers: SplitMix64.
pub struct Chance(u64);

impl Chance {
    /// The numbers of one case of a kind, whatever came before.
    pub fn of(seed: u64, kind: u64, case: u64) -> Self {
        Self(seed.wrapping_mul(1_000_003).wrapping_add(kind << 40).wrapping_add(case))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// One of several.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}
